"""What a tenant may owe bounds what it may use, whatever moves its ledger; with 50 side by side, too."""

from datetime import timedelta

import pytest

from controlplane.billing.grants import grant_credit
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.models import EntryKind, GrantKind, Invoice
from controlplane.billing.statements import close_period
from controlplane.errors import InsufficientFunds
from controlplane.inference.books import check_records, newest_event
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import AT, Customer, D, customer_named, everything, side_by_side

OWED = "what each tenant's quota says is owed is what its ledger says"
PRICED = {"prompt_tokens": 1_000_000, "cached_tokens": 0, "completion_tokens": 0}  # 0.15 dollars


@pytest.fixture
def acme(transactional_db: None) -> Customer:
    found = customer_named("acme")
    found.tenant.created_at = AT - timedelta(days=30)
    found.tenant.save()
    return found


def hold(customer: Customer, dollars: str) -> None:
    run_sync(customer.reserve(new_id("req"), amount=D(dollars)))


def give(customer: Customer, dollars: str) -> None:
    grant_credit(tenant=customer.tenant, amount=D(dollars), kind=GrantKind.PAID, actor="usr")


def assert_kept() -> None:
    [found] = [finding for finding in check_records(newest_event()).findings if finding.name == OWED]
    assert (found.checked > 0, found.broken) == (True, 0)


def test_prepaid_only(acme: Customer) -> None:
    give(acme, "0.2")
    acme.limit({"postpaid_limit": D(0)})
    assert acme.quota().owed == D("-0.2")
    with pytest.raises(InsufficientFunds, match=r"may owe 0 USD beyond its credit, and has 0\.2 USD left"):
        hold(acme, "0.200000000001")
    acme.serve(**PRICED)
    with pytest.raises(InsufficientFunds):
        hold(acme, "0.06")
    hold(acme, "0.05")
    with pytest.raises(InsufficientFunds):
        hold(acme, "0.000001")
    give(acme, "1")
    hold(acme, "1")
    assert_kept()


def test_a_payment_makes_room_and_a_close_does_not(acme: Customer) -> None:
    acme.limit({"postpaid_limit": D("0.15")})
    acme.serve(**PRICED)
    close_period(tenant=acme.tenant, until=AT + timedelta(hours=1), actor="usr")
    with pytest.raises(InsufficientFunds):
        hold(acme, "0.01")
    invoice = everything(Invoice).get()
    book_entry(
        tenant=acme.tenant, invoice_id=invoice.id, kind=EntryKind.PAYMENT, amount=D("0.15"), reason="bank", actor="usr"
    )
    hold(acme, "0.15")
    assert_kept()


def test_without_a_limit_nothing_is_refused(acme: Customer) -> None:
    acme.serve(**PRICED)
    hold(acme, "1000")
    assert acme.quota().owed == D("0.15")


def test_many_side_by_side_pass_exactly_as_often_as_there_is_credit(acme: Customer) -> None:
    give(acme, "0.95")
    acme.limit({"postpaid_limit": D("0.1")})
    results = side_by_side([lambda: acme.serve(**PRICED).normalize()] * 20)
    assert results == {"0.15": 7, "InsufficientFunds": 13}
    assert acme.quota().owed == D("0.1")
    assert_kept()


@pytest.mark.django_db
def test_an_operator_sets_it(cast: Cast, operator: Api) -> None:
    path = f"operator/tenants/{cast.acme.id}/limits"
    assert operator.get(path)[1]["postpaid_limit"] is None
    assert operator.put(path, {"postpaid_limit": "0"})[1]["postpaid_limit"] == "0"
    assert operator.put(path, {"postpaid_limit": "-1"})[0] == 400
    status, body = operator.put(path, {"postpaid_limit": None})
    assert (status, body["postpaid_limit"], body["owed"]) == (200, None, "0")
