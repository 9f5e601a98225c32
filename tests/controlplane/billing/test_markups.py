"""Mark-ups of shared adapters: pinned, charged to the grantee, earned by the owner, on both statements and invoices."""

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.models import Adapter, AdapterGrant
from controlplane.billing.earnings import open_earnings
from controlplane.billing.grants import grant_credit
from controlplane.billing.markups import earned_of, set_markup
from controlplane.billing.models import (
    GrantKind,
    Invoice,
    LineKind,
    Markup,
    Statement,
    StatementEarning,
    StatementLine,
    UsageEvent,
)
from controlplane.billing.pricing import PinnedMarkup, PinnedPrice, amount_of, markup_of, most_it_may_cost
from controlplane.billing.queries import tenant_balance
from controlplane.billing.services import price_by_id, price_for, record_usage
from controlplane.billing.statements import close_period
from controlplane.billing.terms import Terms
from controlplane.errors import InvalidRequest
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.billing.test_agreements import agreed
from tests.controlplane.billing.test_invoices import account, assert_books_hold, old
from tests.controlplane.conftest import Api, Cast, signed_in
from tests.controlplane.money import AT, BASE, Customer, D, customer_named, everything

ADAPTER = "adp_shared"
SECOND = timedelta(seconds=1)
MILLION = 10**6


@pytest.fixture
def owner_of(db: None) -> Customer:
    return old(customer_named("owner"))


@pytest.fixture
def acme(db: None) -> Customer:
    return old(customer_named("acme", input="1", cached_input="1", output="1"))


@pytest.fixture(autouse=True)
def share() -> Iterator[None]:
    with override_settings(MAX_MARKUP="10", MARKUP_SHARE_PERCENT=20):
        yield


def mark_up(owner: Customer, grantee: Customer, per_million: str, adapter_id: str = ADAPTER) -> Markup | None:
    return set_markup(
        tenant=owner.tenant, adapter_id=adapter_id, grantee=grantee.tenant, per_million=D(per_million), actor="usr"
    )  # fmt: skip


def use(customer: Customer, prompt: int, completion: int = 0, adapter_id: str = ADAPTER, **more: Any) -> None:
    price = run_sync(price_for(tenant_id=customer.tenant.id, base_model=BASE, adapter_id=adapter_id))
    usage = customer.usage(
        new_id("req"), prompt_tokens=prompt, cached_tokens=0, completion_tokens=completion, adapter_id=adapter_id,
        adapter_version_id="adv_1", model="owner/bot@1", price_id=price.id,
        markup_id=price.markup.id if price.markup else None, **more,
    )  # fmt: skip
    run_sync(record_usage(**usage))


def close(customer: Customer, seconds: int = 1) -> Statement:
    return close_period(tenant=customer.tenant, until=AT + seconds * SECOND, actor="usr")


def balance(customer: Customer) -> Any:
    found = run_sync(tenant_balance(tenant_id=customer.tenant.id))
    return found.credit - found.owed


# --- what it comes to ---------------------------------------------------------------------------------------------


@given(
    st.tuples(*[st.integers(0, 10**9)] * 3), st.tuples(*[st.decimals(0, 9, places=6)] * 3),
    st.decimals("0.000001", 10, places=6), st.integers(0, 100),
)  # fmt: skip
def test_a_mark_up_is_exact_and_within_the_hold(
    tokens: tuple[int, int, int], rates: tuple[Any, ...], per_million: Any, percent: int
) -> None:
    prompt, cached, completion = tokens[0], min(tokens[:2]), tokens[2]
    low, high, output = [*sorted(rates[:2]), rates[2]]
    with override_settings(MARKUP_SHARE_PERCENT=percent):
        earned = earned_of(per_million)
    assert 0 <= Fraction(per_million) * (100 - percent) / 100 - Fraction(earned) < Fraction(1, MILLION)
    plain = PinnedPrice("prc", high, low, output)
    price = PinnedPrice("prc", high, low, output, PinnedMarkup("mkp", per_million, earned))
    used = {"prompt": prompt, "cached": cached, "completion": completion}
    asked, got = markup_of(price, tokens=prompt + completion)
    assert Fraction(asked) == Fraction(per_million) * (prompt + completion) / MILLION
    assert Fraction(got) == Fraction(earned) * (prompt + completion) / MILLION
    assert amount_of(price, **used) == amount_of(plain, **used) + asked
    assert amount_of(price, **used) <= most_it_may_cost(price, prompt=prompt, max_completion=completion)


def test_only_whom_it_was_set_for_pays_it_and_only_there(owner_of: Customer, acme: Customer) -> None:
    other = customer_named("other")
    mark_up(owner_of, acme, "2")
    asked = {
        (customer.tenant.slug, adapter_id): run_sync(
            price_for(tenant_id=customer.tenant.id, base_model=BASE, adapter_id=adapter_id)
        ).markup
        for customer in (acme, other, owner_of)
        for adapter_id in (ADAPTER, "adp_another", None)
    }
    found = asked.pop(("acme", ADAPTER))
    assert found is not None
    assert (found.per_million, found.earned) == (2, D("1.6"))
    assert set(asked.values()) == {None}


def test_what_was_admitted_keeps_its_mark_up(owner_of: Customer, acme: Customer, transactional_db: None) -> None:
    mark_up(owner_of, acme, "2")
    price = run_sync(price_for(tenant_id=acme.tenant.id, base_model=BASE, adapter_id=ADAPTER))
    mark_up(owner_of, acme, "3")
    mark_up(owner_of, acme, "0")
    assert price.markup is not None
    assert run_sync(price_by_id(price.id, adapter_id=ADAPTER, markup_id=price.markup.id)) == price
    assert run_sync(price_for(tenant_id=acme.tenant.id, base_model=BASE, adapter_id=ADAPTER)).markup is None
    assert [row.per_million for row in everything(Markup).order_by("effective_from")] == [2, 3]
    assert everything(Markup).filter(effective_to=None).count() == 0


def test_history_cannot_be_changed(owner_of: Customer, acme: Customer) -> None:
    mark_up(owner_of, acme, "2")
    for change in ({"per_million": 1}, {"earned": 0}, {"grantee": owner_of.tenant}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Markup._base_manager.update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        Markup._base_manager.all().delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        two_at_once(owner_of, acme)


def two_at_once(owner_of: Customer, acme: Customer) -> None:
    Markup.objects.create(tenant=owner_of.tenant, adapter_id=ADAPTER, grantee=acme.tenant, per_million=1, earned=1)
    transaction.get_connection().check_constraints()


@pytest.mark.parametrize("per_million", ["-0.1", "10.000001", "1.0000001", "NaN", "Infinity"])
def test_what_the_operator_does_not_allow(owner_of: Customer, acme: Customer, per_million: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        mark_up(owner_of, acme, per_million)
    assert refused.value.param == "per_million"
    with override_settings(MAX_MARKUP="0"), pytest.raises(InvalidRequest):
        mark_up(owner_of, acme, "0.5")


# --- the books ----------------------------------------------------------------------------------------------------


def test_both_sides_of_the_books(owner_of: Customer, acme: Customer) -> None:
    """A million tokens at $1, and $2 on top, of which the owner has $1.60."""
    mark_up(owner_of, acme, "2")
    use(acme, 600_000, 400_000)
    event = everything(UsageEvent).get()
    assert (event.amount, event.markup_amount, event.earned_amount) == (3, 2, D("1.6"))
    accounts = [account(f"{acme.tenant.id}:receivable"), account("platform:revenue"), account("platform:royalties")]
    assert accounts == [3, D("-1.4"), D("-1.6")]
    assert open_earnings(owner_of.tenant) == {(ADAPTER, acme.tenant.id): D("1.6")}
    assert balance(owner_of) == 0
    assert_books_hold()
    statement = close(owner_of)
    assert (balance(owner_of), account("platform:royalties"), open_earnings(owner_of.tenant)) == (D("1.6"), 0, {})
    earning = StatementEarning.objects.get()
    assert (earning.statement_id, earning.label, earning.grantee) == (statement.id, "owner/bot", "acme")
    assert (earning.requests, earning.tokens, earning.amount) == (1, MILLION, D("1.6"))
    assert_books_hold()


def test_the_grantees_statement_and_invoice_say_what_is_whose(owner_of: Customer, acme: Customer) -> None:
    mark_up(owner_of, acme, "2")
    use(acme, MILLION)
    statement = close(acme)
    lines = {line.kind: line for line in StatementLine.objects.filter(statement=statement)}
    assert {kind: line.amount for kind, line in lines.items()} == {LineKind.USAGE: 1, LineKind.MARKUP: 2}
    assert lines[LineKind.MARKUP].label == "owner/bot: its owner's mark-up, 1,000,000 tokens at 2 USD per million"
    invoice = Invoice.objects.get()
    assert [(line["kind"], line["amount"]) for line in invoice.lines] == [("usage", "1.00"), ("markup", "2.00")]
    assert invoice.total == 3
    assert_books_hold()


def test_the_owners_invoice_says_what_its_earnings_paid(owner_of: Customer, acme: Customer) -> None:
    mark_up(owner_of, acme, "10")
    use(acme, MILLION)
    grant_credit(tenant=owner_of.tenant, amount=D(1), kind=GrantKind.PROMO, actor="usr")
    use(owner_of, 20 * MILLION, adapter_id="adp_own")  # at 0.15: 3 dollars
    statement = close(owner_of)
    assert (statement.total, statement.credit_used, statement.due) == (3, 3, 0)
    invoice = Invoice.objects.get(tenant=owner_of.tenant)
    assert [(line["kind"], line["amount"]) for line in invoice.lines] == [
        ("usage", "3.00"), ("credit", "-1.00"), ("earned", "-2.00"),
    ]  # fmt: skip
    assert balance(owner_of) == 6
    assert_books_hold()


def test_an_earning_is_on_one_statement_also_where_it_comes_late(owner_of: Customer, acme: Customer) -> None:
    mark_up(owner_of, acme, "2")
    use(acme, MILLION, finished_at=AT + 5 * SECOND)
    close(owner_of, 1)
    assert StatementEarning.objects.count() == 0
    close(owner_of, 10)
    use(acme, 2 * MILLION, finished_at=AT)  # booked after its period's close
    close(owner_of, 20)
    assert [row.amount for row in StatementEarning.objects.order_by("id")] == [D("1.6"), D("3.2")]
    assert_books_hold()


def test_agreements_are_with_the_platform_and_leave_the_mark_up(owner_of: Customer, acme: Customer) -> None:
    mark_up(owner_of, acme, "2")
    use(acme, MILLION)
    agreed(acme, Terms(included_tokens=10**15))
    statement = close(acme)
    assert statement.total == 2
    assert_books_hold()


def test_a_mark_up_of_another_is_found_out(owner_of: Customer, acme: Customer) -> None:
    """The checks of the books see what was charged to the wrong tenant."""
    found = mark_up(owner_of, acme, "2")
    assert found is not None
    run_sync(record_usage(**owner_of.usage("req_wrong", adapter_id=ADAPTER, markup_id=found.id)))
    with pytest.raises(AssertionError, match="mark-ups are charged to whom"):
        assert_books_hold()


# --- over HTTP ----------------------------------------------------------------------------------------------------


@pytest.fixture
def grant(cast: Cast) -> AdapterGrant:
    adapter = Adapter.objects.create(tenant=cast.acme, name="bot", base_model=BASE)
    return AdapterGrant.objects.create(tenant=cast.acme, adapter=adapter, grantee=cast.globex)


def test_the_owner_sets_it_and_both_see_it(owner: Api, stranger: Api, grant: AdapterGrant) -> None:
    path = f"adapters/{grant.adapter_id}/grants/{grant.id}/markup"
    status, body = owner.put(path, {"per_million": "2.5"})
    assert (status, body["markup"]["per_million"], body["markup"]["earned_per_million"]) == (200, "2.5", "2")
    assert owner.put(path, {"per_million": "2.5"})[1] == body  # the same again is the same one
    [theirs] = stranger.get("markups")[1]["data"]
    assert (theirs["owner"], theirs["grantee"], theirs["per_million"]) == ("acme", "globex", "2.5")
    assert (theirs["earned_per_million"], theirs["earned"]) == (None, None)
    [mine] = owner.get("markups")[1]["data"]
    assert (mine["id"], mine["earned"]) == (theirs["id"], "0")


def test_the_rules_are_told_before_somebody_breaks_them(owner: Api, grant: AdapterGrant) -> None:
    with override_settings(MAX_MARKUP="7.5", MARKUP_SHARE_PERCENT=15):
        body = owner.get("markups")[1]
    assert (body["max_per_million"], body["owner_percent"]) == ("7.5", 85)


NOTHING_EARNED = {"data": [], "total": "0", "closed": [], "time_zone": "UTC"}


def test_what_is_earned_is_shown_at_once_and_kept_by_period(cast: Cast, owner: Api, grant: AdapterGrant) -> None:
    cast.acme.created_at = AT - timedelta(days=3)
    cast.acme.save()
    assert owner.get("earnings")[1] == NOTHING_EARNED
    for slug, tokens in (("third", MILLION), ("fourth", 3 * MILLION)):
        payer = customer_named(slug)
        set_markup(
            tenant=cast.acme, adapter_id=grant.adapter_id, grantee=payer.tenant, per_million=D(2), actor="usr"
        )  # fmt: skip
        use(payer, tokens, adapter_id=grant.adapter_id)
    body = owner.get("earnings")[1]
    assert [(row["grantee"], row["tokens"], row["amount"]) for row in body["data"]] == [
        ("fourth", 3 * MILLION, "4.8"), ("third", MILLION, "1.6"),
    ]  # fmt: skip
    assert (body["total"], body["closed"]) == ("6.4", [])
    statement = close_period(tenant=cast.acme, until=AT + SECOND, actor="usr")
    body = owner.get("earnings")[1]
    assert (body["data"], body["total"]) == ([], "0")
    assert [(row["statement_id"], row["earned"]) for row in body["closed"]] == [(statement.id, "6.4")]
    assert signed_in(cast.stranger).get("earnings")[1] == NOTHING_EARNED


def test_only_the_owner_of_the_grant_sets_it(stranger: Api, owner: Api, cast: Cast, grant: AdapterGrant) -> None:
    for adapter_id, grant_id in (
        (grant.adapter_id, grant.id), ("adp_none", grant.id), (grant.adapter_id, "agr_none"), (grant.adapter_id, "%00"),
    ):  # fmt: skip
        assert stranger.put(f"adapters/{adapter_id}/grants/{grant_id}/markup", {"per_million": "1"})[0] == 404
    path = f"adapters/{grant.adapter_id}/grants/{grant.id}/markup"
    status, body = owner.put(path, {"per_million": "10.5"})
    assert (status, body["error"]["param"]) == (400, "per_million")
    assert "0 to 10 USD per million tokens" in body["error"]["message"]
    assert signed_in(cast.people["viewer"]).put(path, {"per_million": "1"})[0] == 403
    assert everything(Markup).count() == 0


def test_a_statement_over_http_has_the_earnings(cast: Cast, owner: Api, grant: AdapterGrant) -> None:
    cast.acme.created_at = AT - timedelta(days=3)
    cast.acme.save()
    globex = customer_named("third")
    set_markup(
        tenant=cast.acme, adapter_id=grant.adapter_id, grantee=globex.tenant, per_million=D(2), actor="usr"
    )  # fmt: skip
    use(globex, MILLION, adapter_id=grant.adapter_id)
    statement = close_period(tenant=cast.acme, until=AT + SECOND, actor="usr")
    body = owner.get(f"statements/{statement.id}")[1]
    assert (body["total"], body["earned"], body["lines"]) == ("0", "1.6", [])
    assert [(row["grantee"], row["tokens"], row["amount"]) for row in body["earnings"]] == [("third", MILLION, "1.6")]
    [credit] = owner.get("grants")[1]["data"]
    assert (credit["kind"], credit["remaining"]) == ("earned", "1.6")
