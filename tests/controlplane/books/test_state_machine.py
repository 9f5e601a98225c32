"""Holding, settling, releasing, expiring, granting, repricing, limiting and closing in any order keep the books right.

A plain Python model says what every quota and balance must be; at the end each invariant is checked on the database.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from controlplane.billing.grants import grant_credit
from controlplane.billing.models import EngineRecord, GrantKind, Statement, UsageEvent
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.pricing import PinnedPrice, amount_of, most_it_may_cost
from controlplane.billing.queries import tenant_balance
from controlplane.billing.services import price_for, record_usage
from controlplane.billing.statements import close_period
from controlplane.errors import InsufficientFunds, InvalidRequest
from controlplane.inference.books import check_records, newest_event
from controlplane.quotas.models import Hold
from controlplane.quotas.services import expire_holds, release_hold
from tenants.ids import new_id
from tenants.models import ApiKey
from tenants.postgres.base import as_owner
from tenants.sql import Plan, run_sync
from tests.controlplane.money import BASE, Customer, D, Settlement, another_key, customer_named, everything, settle_hold

tokens = st.integers(0, 40)
dollars = st.decimals(0, "0.0002", places=8)
NOTHING = D(0)


@dataclass
class Request:
    """What the model knows of one hold."""

    id: str
    key: ApiKey
    price: PinnedPrice
    prompt: int
    most: int
    state: str = "open"
    used: Decimal = NOTHING

    @property
    def held(self) -> Decimal:
        return most_it_may_cost(self.price, prompt=self.prompt, max_completion=self.most)


# Credit that somebody gives; what mark-ups earned comes of closing alone.
GIVEN = [kind for kind in GrantKind if kind != GrantKind.EARNED]


class Books(RuleBasedStateMachine):
    requests = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        with (
            as_owner("default"),
            connection.cursor() as cursor,
        ):  # so that what one run broke is not found again by the next
            cursor.execute(
                "TRUNCATE quotas_hold, quotas_quota, billing_discrepancy, billing_enginerecord, billing_grant,"
                " billing_ledgeraccount, billing_ledgertransaction, billing_price, billing_statement,"
                " billing_counter CASCADE"
            )
        self.acme: Customer = customer_named(new_id("t").lower().replace("_", "-"))
        self.keys = [self.acme.key, another_key(self.acme)]
        self.budgets: dict[str | None, Decimal | None] = {None: None}
        self.all: list[Request] = []
        self.granted = D(0)

    # --- what the model says ---------------------------------------------------------------------------------------

    def spent(self, key: ApiKey | None = None) -> Decimal:
        return sum((r.used for r in self.all if key in (None, r.key)), D(0))

    def held(self, key: ApiKey | None = None) -> Decimal:
        return sum((r.held for r in self.all if r.state == "open" and key in (None, r.key)), D(0))

    def has_room(self, key: ApiKey, amount: Decimal) -> bool:
        levels = [(self.budgets[None], None), (self.budgets.get(key.id), key)]
        return all(b is None or self.spent(level) + self.held(level) + amount <= b for b, level in levels)

    # --- what may happen -------------------------------------------------------------------------------------------

    @rule(target=requests, key=st.integers(0, 1), prompt=tokens, most=tokens)
    def reserve(self, key: int, prompt: int, most: int) -> Request:
        price = run_sync(price_for(tenant_id=self.acme.tenant.id, base_model=BASE, adapter_id=None))
        request = Request(new_id("req"), self.keys[key], price, prompt, most, state="refused")
        plan = self.acme.reserve(request.id, amount=request.held, tokens=prompt + most, key_id=request.key.id)
        fits = self.has_room(request.key, request.held)
        try:
            run_sync(plan)
            assert fits
            request.state = "open"
        except InsufficientFunds:
            assert not fits
        self.all.append(request)
        return request

    @rule(request=requests, cached=tokens, completion=tokens, deliveries=st.integers(1, 3))
    def settle(self, request: Request, cached: int, completion: int, deliveries: int) -> None:
        """Once from the door, or from the journal, or both: also after the hold has ended."""
        if request.state == "refused":
            return
        cached, completion = min(cached, request.prompt), min(completion, request.most)
        amount = amount_of(request.price, prompt=request.prompt, cached=cached, completion=completion)
        found = [run_sync(self._settled(request, amount, cached, completion)) for _ in range(deliveries)]
        first = Settlement.SETTLED if request.state == "open" else Settlement.LATE
        expected = Settlement.NOTHING if request.state in ("settled", "late") else first
        assert found == [expected] + [Settlement.NOTHING] * (deliveries - 1)
        if expected:
            request.state, request.used = ("settled" if expected is Settlement.SETTLED else "late"), amount

    def _settled(self, request: Request, amount: Decimal, cached: int, completion: int) -> Plan[Settlement]:
        ended = yield from settle_hold(request_id=request.id, amount=amount, tokens=request.prompt + completion)
        if ended:
            now = timezone.now()
            counts = {"prompt_tokens": request.prompt, "cached_tokens": cached, "completion_tokens": completion}
            more = {"price_id": request.price.id, "key_id": request.key.id, "late": ended is Settlement.LATE}
            usage = self.acme.usage(request.id, **counts, **more, started_at=now, finished_at=now)
            assert (yield from record_usage(**usage))
            assert not (yield from record_usage(**usage))
            line = {**counts, "device_ns": usage["device_ns"], "finish_reason": "stop", "request_id": request.id}
            EngineRecord.objects.create(engine_id="e", position=EngineRecord.objects.count() + 1, **line)
        return ended

    @rule(key=st.integers(0, 1), prompt=tokens, most=tokens, end=st.sampled_from(["release", "expire"]))
    def end_and_settle_late(self, key: int, prompt: int, most: int, end: str) -> None:
        request = self.reserve(key, prompt, most)
        self.release(request) if end == "release" else self.expire(request, sweep=True)
        self.settle(request, cached=prompt // 2, completion=most, deliveries=2)

    @rule(request=consumes(requests))
    def release(self, request: Request) -> None:
        assert run_sync(release_hold(request_id=request.id)) is (request.state == "open")
        if request.state == "open":
            request.state = "released"

    @rule(request=requests, sweep=st.booleans())
    def expire(self, request: Request, sweep: bool) -> None:
        """The request dies; its hold is swept now, or by whoever next needs the money."""
        if request.state != "open":
            return
        everything(Hold).filter(request_id=request.id).update(expires_at=timezone.now() - timedelta(seconds=1))
        if sweep or self.budgets != {None: None}:
            assert expire_holds() == 1
            request.state = "expired"
        else:
            everything(Hold).filter(request_id=request.id).update(expires_at=timezone.now() + timedelta(hours=1))

    @rule(level=st.integers(-1, 1), budget=st.none() | dollars)
    def limit(self, level: int, budget: Decimal | None) -> None:
        key = self.keys[level] if level >= 0 else None
        self.acme.limit({"budget": budget}, key=key)
        self.budgets[key.id if key else None] = budget

    @rule(amount=st.decimals("0.00000001", "0.0001", places=8), kind=st.sampled_from(GIVEN))
    def grant(self, amount: Decimal, kind: GrantKind) -> None:
        for _ in range(2):
            grant_credit(tenant=self.acme.tenant, amount=amount, kind=kind, actor="usr", reference=f"{self.granted}")
        self.granted += amount

    @rule(rates=st.tuples(dollars, dollars, dollars))
    def reprice(self, rates: tuple[Decimal, Decimal, Decimal]) -> None:
        cached, full, output = sorted(rate.quantize(D("0.000001")) for rate in rates)
        found = Rates(input=full, cached_input=cached, output=output)
        set_price(base_model=BASE, rates=found, actor="usr", tenant=self.acme.tenant)

    @rule()
    def close(self) -> None:
        try:
            close_period(tenant=self.acme.tenant, actor="usr")
        except InvalidRequest:
            assert everything(Statement).filter(tenant=self.acme.tenant).exists()

    # --- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def quotas_and_balance_are_the_models(self) -> None:
        for key in (None, *self.keys):
            if (key.id if key else None) in self.budgets and (key or self.all or self.budgets[None] is not None):
                quota = self.acme.quota(key)
                assert (quota.spent, quota.held) == (self.spent(key), self.held(key))
        balance = run_sync(tenant_balance(tenant_id=self.acme.tenant.id))
        assert balance.owed - balance.credit == self.spent() - self.granted
        assert 0 in (balance.owed, balance.credit)

    def teardown(self) -> None:
        report = check_records(newest_event())
        assert report.is_balanced, [finding for finding in report.findings if finding.broken]
        assert everything(UsageEvent).filter(tenant=self.acme.tenant).count() == sum(
            r.state in ("settled", "late") for r in self.all
        )


@pytest.mark.django_db(transaction=True)
def test_the_books_hold_in_any_order() -> None:
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
