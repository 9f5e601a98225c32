"""What a batch reserves and its lines draw: quotas stay the sums of their holds, whatever is drawn in which order."""

from decimal import Decimal as D
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.errors import Conflict, InsufficientFunds, RateLimited
from controlplane.quotas.batch_holds import Share, draw, reserve_batch
from controlplane.quotas.checks import CHECKS
from controlplane.quotas.limits import LimitChanges
from controlplane.quotas.services import expire_holds, release_hold
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.money import Customer, another_key, customer_named, settle_hold
from tests.controlplane.quotas.conftest import Levels


def reserve(acme: Customer, amount: str = "1", tokens: int = 1000, batch: str = "batch") -> None:
    plan = reserve_batch(
        batch_id=batch, tenant_id=acme.tenant.id, key_id=acme.key.id, tokens=tokens, amount=D(amount), ttl_seconds=60
    )
    run_sync(plan)


def take(acme: Customer, request_id: str, amount: str, tokens: int, share: Share) -> None:
    plan = draw(
        request_id=request_id, tenant_id=acme.tenant.id, key_id=acme.key.id, tokens=tokens, amount=D(amount),
        ttl_seconds=60, context=acme.context, share=share,
    )  # fmt: skip
    run_sync(plan)


def share(amount: str, tokens: int) -> Share:
    return Share("batch", D(amount), tokens)


def assert_sums() -> None:
    with connection.cursor() as cursor:
        for name, sql in CHECKS.items():
            cursor.execute(sql)
            assert cursor.fetchone()[1] == 0, name


def test_a_line_takes_its_share_and_the_rest_of_it_goes_back(acme: Customer) -> None:
    reserve(acme)
    assert (acme.quota().held, acme.quota().running, acme.quota().day_tokens) == (1, 0, 1000)
    take(acme, "line", "0.1", 50, share("0.4", 300))
    assert (acme.hold("batch").amount, acme.hold("batch").tokens) == (D("0.6"), 700)
    assert (acme.quota().held, acme.quota().running, acme.quota().day_tokens) == (D("0.7"), 0, 750)
    run_sync(settle_hold(request_id="line", amount=D("0.03"), tokens=20))
    assert (acme.quota().held, acme.quota().spent, acme.quota().day_tokens) == (D("0.6"), D("0.03"), 720)
    run_sync(release_hold(request_id="batch"))
    assert (acme.quota().held, acme.quota().spent, acme.quota().day_tokens) == (0, D("0.03"), 20)
    assert_sums()


def test_what_a_line_needs_beyond_its_share_is_asked_for(acme: Customer) -> None:
    acme.limit(LimitChanges(budget=D("1.2"), tokens_per_day=1100))
    reserve(acme)
    take(acme, "one", "0.3", 150, share("0.1", 100))
    assert (acme.hold("batch").amount, acme.quota().held, acme.quota().day_tokens) == (D("0.9"), D("1.2"), 1050)
    with pytest.raises(InsufficientFunds):
        take(acme, "two", "0.2", 10, share("0.1", 10))
    with pytest.raises(RateLimited) as caught:
        take(acme, "three", "0.1", 200, share("0.1", 100))
    assert "day" in caught.value.message
    take(acme, "four", "0.1", 100, share("0.1", 100))
    assert_sums()


def test_where_the_reservation_is_used_up_a_line_is_as_any_request(acme: Customer) -> None:
    acme.limit(LimitChanges(budget=D("1.5")))
    reserve(acme)
    take(acme, "one", "1", 1000, share("5", 5000))
    assert (acme.hold("batch").amount, acme.hold("batch").tokens) == (0, 0)
    take(acme, "two", "0.5", 10, share("5", 5000))
    with pytest.raises(InsufficientFunds):
        take(acme, "three", "0.1", 10, share("5", 5000))
    assert_sums()


def test_anothers_reservation_is_not_drawn_from(acme: Customer) -> None:
    reserve(acme)
    globex = customer_named("globex")
    run_sync(
        draw(
            request_id="theirs", tenant_id=globex.tenant.id, key_id=globex.key.id, tokens=5, amount=D("0.1"),
            ttl_seconds=60, context=globex.context, share=share("1", 1000),
        )
    )  # fmt: skip
    second = another_key(acme)
    run_sync(
        draw(
            request_id="second", tenant_id=acme.tenant.id, key_id=second.id, tokens=5, amount=D("0.1"),
            ttl_seconds=60, context=acme.context, share=share("1", 1000),
        )
    )  # fmt: skip
    assert (acme.hold("batch").amount, globex.quota().held) == (1, D("0.1"))
    assert_sums()


def test_an_id_is_used_once(acme: Customer) -> None:
    reserve(acme)
    with pytest.raises(Conflict):
        reserve(acme)
    take(acme, "line", "0.1", 1, share("0.1", 1))
    with pytest.raises(Conflict):
        take(acme, "line", "0.1", 1, share("0.1", 1))
    assert acme.hold("batch").amount == D("0.9")
    assert_sums()


def test_postpaid_limits_hold(acme: Customer) -> None:
    acme.limit(LimitChanges(postpaid_limit=D("0.5")))
    with pytest.raises(InsufficientFunds):
        reserve(acme)
    reserve(acme, "0.5")
    take(acme, "line", "0.2", 1, share("0.2", 1))
    with pytest.raises(InsufficientFunds):
        take(acme, "more", "0.4", 1, share("0.3", 1))
    assert_sums()


MONEY = st.integers(0, 20).map(lambda cents: str(D(cents) / 100))
TOKENS = st.integers(0, 200)
STEPS = st.sampled_from(["draw", "settle", "release", "end"])


@given(
    limits=st.fixed_dictionaries({"budget": st.sampled_from([None, D("0.5"), D(2)]), "concurrency": st.just(1)}),
    reserved=st.tuples(MONEY, TOKENS),
    steps=st.lists(st.tuples(STEPS, MONEY, TOKENS, MONEY, TOKENS), max_size=12),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_happens_the_sums_hold(
    acme: Customer, limits: Any, reserved: tuple[str, int], steps: list[tuple[str, str, int, str, int]]
) -> None:
    batch = new_id("batch")
    acme.limit(LimitChanges(**limits))
    try:
        reserve(acme, reserved[0], reserved[1], batch)
    except InsufficientFunds:
        return
    opened: list[tuple[str, str, int]] = []
    for i, (step, amount, tokens, part, part_tokens) in enumerate(steps):
        if step == "draw":
            try:
                take(acme, f"{batch}-{i}", amount, tokens, Share(batch, D(part), part_tokens))
                opened.append((f"{batch}-{i}", amount, tokens))
            except InsufficientFunds:
                pass
        elif step == "end":
            run_sync(release_hold(request_id=batch))
        elif opened:
            name, most, most_tokens = opened.pop()
            if step == "settle":
                run_sync(
                    settle_hold(request_id=name, amount=min(D(part), D(most)), tokens=min(part_tokens, most_tokens))
                )
            else:
                run_sync(release_hold(request_id=name))
        assert_sums()
    for name, _, _ in opened:
        run_sync(release_hold(request_id=name))
    run_sync(release_hold(request_id=batch))
    expire_holds()
    assert acme.quota().held == 0
    assert_sums()


def test_a_line_is_held_in_full_on_its_adapter_and_no_more_than_its_share_elsewhere(levels: Levels) -> None:
    """The reservation was not made on the adapter, of which a batch may name many."""
    acme = levels.acme
    for level in ("tenant", "member", "key"):
        levels.limit(level, LimitChanges(budget=D(1), tokens_per_month=1000))
    reserve(acme)
    levels.limit("adapter", LimitChanges(budget=D("0.2"), tokens_per_month=100))

    def line(request_id: str) -> None:
        run_sync(
            draw(
                request_id=request_id, tenant_id=acme.tenant.id, key_id=acme.key.id, adapter_id=levels.adapter_id,
                tokens=60, amount=D("0.15"), ttl_seconds=60, context=acme.context, share=share("0.15", 60),
            )
        )  # fmt: skip

    line("one")
    assert (levels.quota("adapter").held, levels.quota("adapter").month_tokens) == (D("0.15"), 60)
    with pytest.raises(RateLimited) as caught:
        line("two")
    assert (caught.value.headers["x-limit-level"], caught.value.headers["x-limit-kind"]) == (
        "adapter",
        "tokens_per_month",
    )
    run_sync(settle_hold(request_id="one", amount=D("0.05"), tokens=10))
    for level in ("tenant", "member", "key"):
        quota = levels.quota(level)
        assert (quota.held, quota.spent, quota.month_tokens) == (D("0.85"), D("0.05"), 950), level
    assert (levels.quota("adapter").held, levels.quota("adapter").month_tokens) == (0, 10)
    assert_sums()
