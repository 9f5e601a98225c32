"""A tenant's life in any order, with processes that die at any statement: door, worker, sweeper, console, engine.

The engine's journal is what really happened. Whatever else fails, in the end the books say exactly that, once.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db import connection
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from controlplane.billing.earnings import open_earnings
from controlplane.billing.grants import grant_credit
from controlplane.billing.markups import set_markup
from controlplane.billing.models import Discrepancy, Grant, GrantKind, Payment, UsageEvent
from controlplane.billing.payment_booking import take_notice
from controlplane.billing.payment_provider import Notice
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.pricing import most_it_may_cost
from controlplane.billing.queries import usage_by
from controlplane.billing.rollup import roll_up
from controlplane.billing.services import price_for
from controlplane.billing.slices import Slice
from controlplane.billing.statements import close_period
from controlplane.errors import InsufficientFunds, InvalidRequest, RateLimited
from controlplane.inference.books import check_records, newest_event
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.models import JournalCursor
from controlplane.inference.settlement import Account, settle_request
from controlplane.quotas.models import Hold
from controlplane.quotas.services import expire_holds, release_hold, renew_holds, reserve
from engine.protocol import Usage
from tenants.ids import new_id
from tenants.key_services import rotate_key
from tenants.postgres.base import as_owner
from tenants.sql import run_sync
from tests.books.batch_work import BatchWork
from tests.books.beyond import check_alerts, check_deeds, check_secrets
from tests.books.faults import any_of, attempt, dies, few
from tests.books.journal import MemoryEngine
from tests.books.office import Office
from tests.books.payments import FACTS, notice_of, recorded_payment
from tests.books.request import Request
from tests.controlplane.money import BASE, Customer, another_key, customer_named, everything

SHARED = "adp_shared"


class Simulator(BatchWork, Office):
    """running: holds are taken, the engine works. ended: in the journal; what the door does about it may fail."""

    @initialize()
    def begin(self) -> None:
        with as_owner("default"), connection.cursor() as cursor:
            cursor.execute(
                "TRUNCATE quotas_hold, quotas_quota, billing_discrepancy, billing_enginerecord, billing_grant,"
                " billing_ledgeraccount, billing_ledgertransaction, billing_markup, billing_earnedevent, billing_price,"
                " billing_statement, billing_payment, billing_takenback, billing_providernotice, billing_usagesum,"
                " billing_rollupmark, billing_counter, inference_journalcursor CASCADE"
            )
        self.acme: Customer = customer_named(new_id("t").lower().replace("_", "-"))
        self.maker = customer_named(new_id("t").lower().replace("_", "-"))  # owns an adapter that acme may call
        self.keys = [self.acme.key, another_key(self.acme)]
        self.engine = MemoryEngine()
        self.running: list[Request] = []
        self.ended: list[Request] = []
        self.grants = self.days = 0
        self.payments: list[Payment] = []
        self.noticed: list[Notice] = []
        self.secrets: list[str] = []
        self.prepare_batches()
        self.prepare_office()

    # --- the door ----------------------------------------------------------------------------------------------

    @rule(key=st.integers(0, 1), prompt=few, most=few, adapter=st.sampled_from([None, SHARED]), dies_at=dies)
    def reserve(self, key: int, prompt: int, most: int, adapter: str | None, dies_at: int | None) -> None:
        price = run_sync(price_for(tenant_id=self.acme.tenant.id, base_model=BASE, adapter_id=adapter))
        model = "maker/bot@1" if adapter else BASE
        account = Account(self.acme.tenant.id, self.keys[key].id, adapter, None, model, BASE, price)
        request_id = new_id("req")
        plan = reserve(
            request_id=request_id, tenant_id=account.tenant_id, key_id=account.key_id, tokens=prompt + most,
            amount=most_it_may_cost(price, prompt=prompt, max_completion=most), ttl_seconds=3600,
            context=account.to_context(),
        )  # fmt: skip
        with suppress(InsufficientFunds, RateLimited):
            if attempt(lambda: run_sync(plan), dies_at):
                self.running.append(Request(request_id, account, prompt, most))

    @precondition(lambda self: self.running)
    @rule(which=any_of, cached=few, completion=few, reason=st.sampled_from(["stop", "length", "cancelled"]), ago=few)
    def generate(self, which: int, cached: int, completion: int, reason: str, ago: int) -> None:
        """To the end, or to the token at which the client leaves; on an engine whose clock may be days behind."""
        request = self.running.pop(which % len(self.running))
        usage = Usage(request.prompt, min(cached, request.prompt), min(completion, request.most), 1000 * completion)
        found = replace(request, usage=usage, reason=reason, at=timezone.now() - timedelta(days=ago))
        self.engine.write(found.ended(), self.acme.tenant.id)
        self.ended.append(found)

    @precondition(lambda self: self.ended)
    @rule(which=any_of, dies_at=dies)
    def settle(self, which: int, dies_at: int | None) -> None:
        """By the door, which may do so again after a failure: also after the journal was faster."""
        request = self.ended[which % len(self.ended)]
        attempt(lambda: run_sync(settle_request(request.account, request.ended())), dies_at)

    @precondition(lambda self: self.running)
    @rule(which=any_of, dies_at=dies)
    def refuse(self, which: int, dies_at: int | None) -> None:
        """The engine does not take it: it never runs, and leaves nothing in the journal."""
        request = self.running.pop(which % len(self.running))
        attempt(lambda: run_sync(release_hold(request_id=request.id)), dies_at)

    @rule(dies_at=dies)
    def renew(self, dies_at: int | None) -> None:
        names = sorted(request.id for request in self.running)
        attempt(lambda: run_sync(renew_holds(request_ids=names, ttl_seconds=3600)), dies_at)

    # --- the workers -------------------------------------------------------------------------------------------

    @rule(page_limit=st.integers(1, 4), dies_at=dies, loses_ack=st.booleans())
    def ingest(self, page_limit: int, dies_at: int | None, loses_ack: bool) -> None:
        self.engine.loses_acks = loses_ack
        attempt(lambda: ingest_journal(self.engine, page_limit=page_limit), dies_at)  # type: ignore[arg-type]

    @rule(back=few)
    def replay(self, back: int) -> None:
        """An older copy of the cursor: what it had read is read again."""
        cursor = JournalCursor.objects.first()
        if cursor:
            JournalCursor.objects.update(position=max(self.engine.forgotten, cursor.position - back))

    @rule(dies_at=dies)
    def sum_up(self, dies_at: int | None) -> None:
        attempt(roll_up, dies_at)

    @rule(which=any_of, dies_at=dies)
    def expire(self, which: int, dies_at: int | None) -> None:
        """A hold's time is over: its door died, or was away for too long."""
        held = [*(request.id for request in (*self.running, *self.ended)), *(batch.id for batch in self.batches)]
        if held:
            name = held[which % len(held)]
            everything(Hold).filter(request_id=name).update(expires_at=timezone.now() - timedelta(seconds=1))
        attempt(expire_holds, dies_at)

    # --- people ------------------------------------------------------------------------------------------------

    @rule(level=st.integers(-1, 1), budget=st.none() | st.decimals(0, "0.0002", places=8), running=st.none() | few)
    def limit(self, level: int, budget: Decimal | None, running: int | None) -> None:
        changes = {"budget": budget, "concurrency": running, "tokens_per_day": running and 30 * running}
        self.acme.limit(changes, key=self.keys[level] if level >= 0 else None)  # type: ignore[arg-type]

    @rule(rates=st.tuples(*[st.decimals(0, 9, places=6)] * 3), batch_discount=st.integers(0, 100), dies_at=dies)
    def reprice(self, rates: tuple[Decimal, Decimal, Decimal], batch_discount: int, dies_at: int | None) -> None:
        cached, full, output = sorted(rates)
        found = Rates(input=full, cached_input=cached, output=output, batch_discount=batch_discount)
        attempt(lambda: set_price(base_model=BASE, rates=found, actor="usr", tenant=self.acme.tenant), dies_at)

    @rule(per_million=st.just(Decimal(0)) | st.decimals("0.000001", 9, places=6), dies_at=dies)
    def mark_up(self, per_million: Decimal, dies_at: int | None) -> None:
        """The adapter's owner asks something else on top, or nothing more."""
        names = {"tenant": self.maker.tenant, "grantee": self.acme.tenant, "adapter_id": SHARED, "actor": "usr"}
        attempt(lambda: set_markup(**names, per_million=per_million), dies_at)  # type: ignore[arg-type]

    @rule(key=st.integers(0, 1), dies_at=dies)
    def rotate(self, key: int, dies_at: int | None) -> None:
        names = {"tenant": self.acme.tenant, "key_id": self.keys[key].id, "actor": "usr"}
        attempt(lambda: self._rotated(**names), dies_at)

    def _rotated(self, **names: Any) -> None:
        """The text is made before anything dies, and is a secret either way."""
        found = rotate_key(**names, grace=timedelta(hours=1))
        assert found
        self.secrets.append(found[1])

    @rule(
        amount=st.decimals("0.00000001", "0.0001", places=8),
        kind=st.sampled_from([GrantKind.PROMO, GrantKind.PAID]),
        dies_at=dies,
    )
    def grant(self, amount: Decimal, kind: GrantKind, dies_at: int | None) -> None:
        self.grants += 1
        reference = {"actor": "usr", "reference": f"grant {self.grants}"}
        for fault in (dies_at, None):  # sent again until it is heard
            attempt(lambda: grant_credit(tenant=self.acme.tenant, amount=amount, kind=kind, **reference), fault)

    @rule(ago=few, is_maker=st.booleans(), dies_at=dies)
    def close(self, ago: int, is_maker: bool, dies_at: int | None) -> None:
        until = timezone.now() - timedelta(days=ago)
        tenant = self.maker.tenant if is_maker else self.acme.tenant
        with suppress(InvalidRequest):  # it is closed up to there
            attempt(lambda: close_period(tenant=tenant, actor="usr", until=until), dies_at)

    @rule(cents=st.integers(100, 300), dies_at=dies)
    def pay(self, cents: int, dies_at: int | None) -> None:
        """A page of the provider's is opened; what becomes of it is `notify`'s."""
        payment = attempt(
            lambda: recorded_payment(self.acme.tenant, Decimal(cents).scaleb(-2), f"cs_{new_id('x')}"), dies_at
        )  # fmt: skip
        if payment:
            self.payments.append(payment)

    @precondition(lambda self: self.payments)
    @rule(which=any_of, fact=st.sampled_from(FACTS), at=few, dies_at=dies)
    def notify(self, which: int, fact: str, at: int, dies_at: int | None) -> None:
        """Any news of a payment, in any order, any number of times; the process that takes it may die."""
        payment = self.payments[which % len(self.payments)]
        notice = notice_of(payment, fact, at)
        self.noticed.append(notice)
        attempt(lambda: take_notice("stripe", notice), dies_at)

    @rule(by=st.sampled_from(["1 day", "1 month", "12 months"]))
    def jump(self, by: str) -> None:
        """The database's clock, forwards: all that quotas remember is so much longer ago. Days stay within the month,
        so that none of it leaves its month."""
        self.days += by == "1 day"
        if by == "1 day" and self.days >= timezone.now().day:
            return
        back = f"- interval '{by}'"
        month = "date_trunc('month', period_start, 'UTC')"  # where a row was made in the middle of one, it moves along
        period_start = (
            f"CASE WHEN '{by}' = '1 day' AND period_start = {month} THEN {month} ELSE period_start {back} END"
        )
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE quotas_quota SET day_start = day_start {back}, credited_at = credited_at {back},"
                f" period_start = {period_start}"
            )
            cursor.execute(
                f"UPDATE quotas_hold SET created_at = created_at {back}, ended_at = ended_at {back},"
                f" settled_at = settled_at {back}"
            )

    # --- what must be so in the end ----------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "acme"):
            return
        self.engine.loses_acks = False
        ingest_journal(self.engine)  # type: ignore[arg-type]
        expire_holds()
        for notice in self.noticed:  # a provider sends again until it is heard
            take_notice("stripe", notice)
        self._check_owner()
        roll_up()
        wanted = Slice(self.acme.tenant.id, timezone.now() - timedelta(days=365), timezone.now())
        read = run_sync(usage_by(wanted, group_by="day", tz="Asia/Kathmandu"))
        summed = sum((Fraction(row["amount"]) for row in read), Fraction(0))
        assert summed == sum((request.cost() for request in self.ended), Fraction(0))
        report = check_records(newest_event())
        assert report.is_balanced, [finding for finding in report.findings if finding.broken]
        assert not Discrepancy.objects.exists(), list(Discrepancy.objects.values())
        check_secrets(self.secrets, known=self.acme.tenant.id)
        check_deeds()
        check_alerts()
        booked = {
            event.request_id: (
                event.prompt_tokens,
                event.cached_tokens,
                event.completion_tokens,
                Fraction(event.amount),
            )
            for event in everything(UsageEvent).filter(tenant=self.acme.tenant)
        }
        assert booked == {request.id: (*_tokens(request), request.cost()) for request in self.ended}

    def _check_owner(self) -> None:
        """What the owner of the shared adapter has and will have is what acme's requests earned it."""
        given = everything(Grant).filter(tenant=self.maker.tenant, kind=GrantKind.EARNED)
        so_far = sum((Fraction(grant.amount) for grant in given), Fraction(0))
        to_come = sum(map(Fraction, open_earnings(self.maker.tenant).values()), Fraction(0))
        assert so_far + to_come == sum((request.earned() for request in self.ended), Fraction(0))


def _tokens(request: Request) -> tuple[int, int, int]:
    assert request.usage
    return request.usage.prompt_tokens, request.usage.cached_tokens, request.usage.completion_tokens
