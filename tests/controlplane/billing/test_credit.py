"""Credit that expires: the soonest first, for what was used in its time, and the rest is booked away once."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.credit import Source, expire_credit, uses_of
from controlplane.billing.grants import grant_credit
from controlplane.billing.ledger import post
from controlplane.billing.models import Grant, GrantKind, GrantUse
from controlplane.billing.queries import tenant_balance
from controlplane.billing.statements import close_period
from controlplane.errors import Conflict, InvalidRequest
from tenants.sql import run_sync
from tests.controlplane.billing.test_invoices import account, assert_books_hold, old, use
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import AT, Customer, D, customer_named, everything, side_by_side

DAY = timedelta(days=1)
MILLION = 1_000_000  # tokens: 0.15 dollars


def nobody(tenant_id: str) -> Decimal:
    """Nothing runs."""
    return D(0)


@pytest.fixture
def acme(db: None) -> Customer:
    return old(customer_named("acme"))


def grant(customer: Customer, amount: str, *, expires: datetime | None = None, kind: str = "promo") -> Grant:
    """Also one that has expired by now, as time would have made it."""
    found = Grant._base_manager.create(
        tenant=customer.tenant, amount=D(amount), kind=kind, reference=f"{kind} {amount} {expires}", expires_at=expires,
        created_by="usr",
    )  # fmt: skip
    source = "promo" if kind == "promo" else "cash"
    entries = {source: D(amount), "credit": -D(amount)}
    run_sync(post(transaction_id=f"grant:{found.id}", tenant_id=customer.tenant.id, kind="grant", entries=entries))
    return found


def gone(found: Grant) -> list[tuple[str, Decimal]]:
    return sorted(everything(GrantUse).filter(grant=found).values_list("kind", "amount"))


def test_what_expires_first_is_used_first(acme: Customer) -> None:
    never, soon, later = (grant(acme, "0.1", expires=at) for at in (None, AT + 10 * DAY, AT + 20 * DAY))
    use(acme, MILLION, AT)
    statement = close_period(tenant=acme.tenant, until=AT + DAY, actor="usr")
    assert statement.credit_used == D("0.15")
    assert [gone(each) for each in (soon, later, never)] == [[("used", D("0.1"))], [("used", D("0.05"))], []]
    assert_books_hold()


def test_credit_covers_what_began_before_its_expiry_and_the_rest_goes(acme: Customer) -> None:
    present, bought = grant(acme, "1", expires=AT), grant(acme, "1", expires=AT, kind="paid")
    use(acme, MILLION, AT + DAY / 2, started_at=AT - timedelta(microseconds=1))
    use(acme, MILLION, AT)
    statement = close_period(tenant=acme.tenant, until=AT + DAY, actor="usr")
    expire_credit(nobody)
    assert (statement.credit_used, statement.due) == (D("0.15"), D("0.15"))
    assert gone(present) == [("expired", D("0.85")), ("used", D("0.15"))]
    assert gone(bought) == [("expired", D(1))]
    assert (account("platform:promo"), account("platform:breakage")) == (D("0.15"), D(-1))
    assert_books_hold()


def test_expiry_before_the_close_keeps_what_open_usage_needs(acme: Customer) -> None:
    found = grant(acme, "1", expires=AT)
    use(acme, MILLION, AT - DAY)
    assert expire_credit(nobody) == 1
    assert gone(found) == [("expired", D("0.85"))]
    assert expire_credit(nobody) == 1  # what is kept is looked at, and kept
    assert gone(found) == [("expired", D("0.85"))]
    assert run_sync(tenant_balance(tenant_id=acme.tenant.id)).owed == 0
    assert close_period(tenant=acme.tenant, until=AT + DAY, actor="usr").credit_used == D("0.15")
    assert expire_credit(nobody) == 0
    assert_books_hold()


def test_what_has_not_expired_stays(acme: Customer) -> None:
    found = grant(acme, "1", expires=datetime.now(UTC) + DAY)
    close_period(tenant=acme.tenant, actor="usr")
    assert (expire_credit(nobody), gone(found)) == (0, [])


@pytest.mark.django_db(transaction=True)
def test_expiring_side_by_side_with_a_close_books_once(acme: Customer) -> None:
    found = grant(acme, "1", expires=AT)
    use(acme, MILLION, AT - DAY)
    side_by_side(
        [lambda: expire_credit(nobody), lambda: close_period(tenant=acme.tenant, until=AT + DAY, actor="usr")] * 3
    )
    assert gone(found) == [("expired", D("0.85")), ("used", D("0.15"))]
    assert_books_hold()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.none() | st.integers(0, 4)), max_size=4),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)  # fmt: skip
def test_the_choice_covers_as_much_as_any(grants: list[tuple[int, int | None]], usage: list[int]) -> None:
    """usage: dollars on days 0 to 3. A grant expires at the start of its day. The best of all ways, tried out, covers
    no more."""
    grants.sort(key=lambda each: 9 if each[1] is None else each[1])
    sources = [
        Source(str(i), "promo", None, D(amount), None if day is None else D(sum(usage[:day])))
        for i, (amount, day) in enumerate(grants)
    ]
    found = uses_of(sources, D(sum(usage)))
    assert all(0 <= use <= source.remaining for use, source in zip(found, sources, strict=True))
    assert sum(found, D(0)) == _best(grants, usage)


def _best(grants: list[tuple[int, int | None]], usage: list[int]) -> int:
    """By the marriage theorem: over all sets of days left uncovered, the tightest bound."""
    worst = sum(usage)
    for days in product((False, True), repeat=len(usage)):
        outside = sum(u for u, is_in in zip(usage, days, strict=True) if not is_in)
        reach = sum(a for a, day in grants if any(is_in and (day is None or d < day) for d, is_in in enumerate(days)))
        worst = min(worst, outside + reach)
    return worst


def test_a_grant_expires_later_than_now(acme: Customer) -> None:
    wanted = {"tenant": acme.tenant, "amount": D(1), "kind": GrantKind.PAID, "actor": "usr", "reference": "r"}
    with pytest.raises(InvalidRequest, match="in the past") as refused:
        grant_credit(**wanted, expires_at=AT)
    assert refused.value.param == "expires_at"
    later = datetime.now(UTC) + DAY
    assert grant_credit(**wanted, expires_at=later) == grant_credit(**wanted, expires_at=later)
    with pytest.raises(Conflict):
        grant_credit(**wanted)


def test_over_http(cast: Cast, operator: Api, owner: Api, stranger: Api) -> None:
    wanted = {"amount": "5", "kind": "paid", "expires_at": "2099-01-01T00:00:00Z"}
    status, body = operator.post(f"operator/tenants/{cast.acme.id}/grants", wanted)
    assert (status, body["remaining"], body["expires_at"]) == (201, "5", "2099-01-01T00:00:00Z")
    [row] = owner.get("grants")[1]["data"]
    assert (row["id"], row["remaining"]) == (body["id"], "5")
    assert stranger.get("grants")[1]["data"] == []
