"""Holds on four levels against a naive reference: a list of requests that is added up anew for every question."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.errors import ApiError
from controlplane.quotas.limits import change_limits
from controlplane.quotas.models import Hold, Quota
from controlplane.quotas.services import expire_holds, release_hold, reserve
from controlplane.quotas.subjects import Whose
from tenants.ids import new_id
from tenants.key_services import issue_key
from tenants.models import Tenant, User
from tenants.sql import run_sync
from tests.controlplane.money import D, everything, settle_hold

# The database's clock stands still within a test's transaction, so the buckets of a minute never refill.
pytestmark = pytest.mark.django_db


@dataclass
class Request:
    """open, settled, released or expired; tokens and amount: held, then used."""

    id: str
    subjects: tuple[str, ...]
    tokens: int
    amount: Decimal
    state: str = "open"


@dataclass
class Subject:
    """credits: what is left of a minute; None: full."""

    whose: Whose
    limits: dict[str, Any] = field(default_factory=dict)
    request_credit: int | None = None
    token_credit: int | None = None


class World:
    """One tenant, two members, three keys, two adapters; what is done to the product is done to the naive list."""

    def __init__(self) -> None:
        name = new_id("t").replace("_", "-").lower()
        self.tenant = Tenant.objects.create(slug=name, name=name)
        users = [User.objects.create(email=f"{name}{n}@acme.example") for n in range(2)]
        issued = [(users[0], "a"), (users[0], "b"), (users[1], "c")]
        self.keys = [
            (issue_key(tenant=self.tenant, name=each, scopes=("inference",), actor=user)[0].id, user.id)
            for user, each in issued
        ]
        self.adapters = [new_id("adp"), new_id("adp")]
        self.subjects = {self.tenant.id: Subject({})}
        self.subjects |= {user.id: Subject({"member_id": user.id}) for user in users}
        self.subjects |= {key: Subject({"key_id": key}) for key, _ in self.keys}
        self.subjects |= {adapter: Subject({"adapter_id": adapter}) for adapter in self.adapters}
        self.requests: list[Request] = []

    # --- the naive answers ---

    def of(self, subject: str, *states: str) -> Iterator[Request]:
        return (each for each in self.requests if subject in each.subjects and each.state in states)

    def tokens(self, subject: str) -> int:
        return sum(each.tokens for each in self.of(subject, "open", "settled", "expired"))

    def spent(self, subject: str) -> Decimal:
        return sum((each.amount for each in self.of(subject, "settled")), D(0))

    def held(self, subject: str) -> Decimal:
        return sum((each.amount for each in self.of(subject, "open")), D(0))

    def lacks(self, name: str, tokens: int, amount: Decimal) -> Iterator[str]:
        """The limits of a subject that have no room."""
        subject, limits = self.subjects[name], self.subjects[name].limits
        have = {
            "requests_per_minute": left(limits.get("requests_per_minute"), subject.request_credit),
            "tokens_per_minute": left(limits.get("tokens_per_minute"), subject.token_credit),
        }
        used = {
            "tokens_per_day": self.tokens(name), "tokens_per_month": self.tokens(name),
            "concurrency": len(list(self.of(name, "open"))), "budget": self.spent(name) + self.held(name),
        }  # fmt: skip
        have |= {kind: limits[kind] - used[kind] for kind in used if limits.get(kind) is not None}
        needs = {"requests_per_minute": 1, "concurrency": 1, "budget": amount}
        for kind, room in have.items():
            if room is not None and room < needs.get(kind, tokens):
                yield kind

    # --- what may happen, to both ---

    def limit(self, which: int, kind: str, value: int | None) -> None:
        name = list(self.subjects)[which % len(self.subjects)]
        found = D(value) / 100 if kind == "budget" and value is not None else value
        changes: Any = {kind: found}
        run_sync(change_limits(tenant_id=self.tenant.id, changes=changes, **self.subjects[name].whose))
        self.subjects[name].limits[kind] = found

    def reserve(self, key: int, adapter: int, tokens: int, cents: int) -> None:
        (key_id, member), adapter_id = self.keys[key], [*self.adapters, None][adapter]
        subjects = tuple(each for each in (self.tenant.id, member, key_id, adapter_id) if each)
        request = Request(new_id("req"), subjects, tokens, D(cents) / 100)
        lacking = {(level_of(each), kind) for each in subjects for kind in self.lacks(each, tokens, request.amount)}
        refused = None
        try:
            run_sync(
                reserve(
                    request_id=request.id, tenant_id=self.tenant.id, key_id=key_id, adapter_id=adapter_id,
                    tokens=tokens, amount=request.amount, ttl_seconds=60,
                )
            )  # fmt: skip
        except ApiError as error:
            refused = (error.headers["x-limit-level"], error.headers["x-limit-kind"])
        assert refused in lacking if refused else not lacking
        if refused:
            return
        self.requests.append(request)
        for subject in (self.subjects[each] for each in subjects):
            subject.request_credit = less(subject.limits.get("requests_per_minute"), subject.request_credit, 1)
            subject.token_credit = less(subject.limits.get("tokens_per_minute"), subject.token_credit, tokens)

    def end(self, which: int, how: str, share: int) -> None:
        open_ones = [each for each in self.requests if each.state == "open"]
        if not open_ones:
            return
        request = open_ones[which % len(open_ones)]
        used, amount = request.tokens * share // 4, request.amount * share / 4
        if how == "expired":
            everything(Hold).filter(request_id=request.id).update(expires_at=timezone.now() - timedelta(hours=1))
            assert expire_holds() == 1
            request.state = "expired"
            return
        if how == "released":
            used, amount = 0, D(0)
            assert run_sync(release_hold(request_id=request.id))
        else:
            assert run_sync(settle_hold(request_id=request.id, amount=amount, tokens=used))
        self._give_back(request, request.tokens - used)
        request.state, request.tokens, request.amount = how, used, amount

    def _give_back(self, request: Request, tokens: int) -> None:
        for subject in (self.subjects[each] for each in request.subjects):
            if subject.token_credit is not None:
                most = subject.limits.get("tokens_per_minute")
                subject.token_credit += tokens
                subject.token_credit = subject.token_credit if most is None else min(most, subject.token_credit)

    def check(self) -> None:
        for quota in everything(Quota).filter(tenant=self.tenant):
            name = quota.subject
            assert quota.running == len(list(self.of(name, "open")))
            assert (quota.spent, quota.held) == (self.spent(name), self.held(name))
            assert quota.day_tokens == quota.month_tokens == self.tokens(name)


def left(limit: int | None, credit: int | None) -> int | None:
    return None if limit is None else limit if credit is None else min(limit, credit)


def less(limit: int | None, credit: int | None, cost: int) -> int | None:
    room = left(limit, credit)
    return None if room is None else room - cost


def level_of(subject: str) -> str:
    return {"ten": "tenant", "usr": "member", "key": "key", "adp": "adapter"}[subject.partition("_")[0]]


few = st.integers(0, 40)
kinds = ["requests_per_minute", "tokens_per_minute", "tokens_per_day", "tokens_per_month", "concurrency", "budget"]
ops = st.one_of(
    st.tuples(st.just("limit"), st.integers(0, 7), st.sampled_from(kinds), st.none() | st.integers(1, 60)),
    st.tuples(st.just("reserve"), st.integers(0, 2), st.integers(0, 2), few, few),
    st.tuples(st.just("reserve"), st.integers(0, 2), st.integers(0, 2), few, few),
    st.tuples(st.just("end"), few, st.sampled_from(["settled", "released", "expired"]), st.integers(0, 4)),
)


@settings(max_examples=40)
@given(st.lists(ops, min_size=5, max_size=25))
def test_every_answer_is_the_naive_one(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for name, *arguments in script:
        getattr(world, name)(*arguments)
    world.check()
