"""Whoever wants money that is not theirs, or stumbles into it: by orders, names and instants that nobody meant."""

import time
from datetime import UTC, date, datetime
from itertools import permutations
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from controlplane.billing import delivery, invoice_shapes
from controlplane.billing.models import Discrepancy, Invoice, InvoiceEntry, TakenBack
from controlplane.billing.queries import tenant_balance
from controlplane.billing.services import price_by_id, record_usage
from controlplane.billing.statements import close_period
from controlplane.billing.webhooks import delete_endpoint
from controlplane.errors import InvalidRequest
from controlplane.inference import tasks
from controlplane.quotas.services import settling
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.billing.fake_stripe import FakeStripe, event, refund, signature
from tests.controlplane.billing.paying import DONE, bought, credit, intent_of, state_of, stripe, told, web
from tests.controlplane.billing.test_credit import MILLION, gone, grant
from tests.controlplane.billing.test_invoices import (
    SECOND,
    account,
    acme,
    assert_books_hold,
    book,
    invoice_for,
    still_open,
    taxed,
)
from tests.controlplane.billing.test_webhooks import LOCAL, Hook, alert, hook, register
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import Customer, D, everything, side_by_side

__all__ = ["acme", "hook", "stripe", "taxed", "web"]


# --- what was never paid does not come back ------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(["write_off", "credit_note"])))
def test_what_was_given_up_is_not_credited_as_well(acme: Customer, taxed: Invoice, order: tuple[str, ...]) -> None:
    """Both of one invoice would leave it below nothing: money to refund that nobody has paid, and credit to spend."""
    first, second = order
    book(acme, taxed, first, "11.90")
    with pytest.raises(InvalidRequest) as refused:
        book(acme, taxed, second, "0.01")
    assert refused.value.param == "amount"
    with pytest.raises(InvalidRequest):
        book(acme, taxed, "refund", "0.01")
    assert (still_open(acme, taxed), account("platform:cash")) == (0, 0)
    assert_books_hold()


def test_no_order_of_entries_makes_money(acme: Customer, taxed: Invoice) -> None:
    """Whatever an operator tries, in any order: no more goes out than came in, and nobody ends with a present."""
    kinds = ("payment", "credit_note", "write_off", "refund", "reversal")
    orders = [order for order in permutations(kinds, 3) if order[0] in ("payment", "write_off")]
    for n, order in enumerate(orders):
        invoice = invoice_for(acme, 66_666_667, seconds=n + 2)
        for kind in order:
            for amount in ("11.90", "5.95"):
                try:
                    book(acme, invoice, kind, amount)
                except InvalidRequest:
                    continue
        sums = dict.fromkeys(kinds, D(0))
        for entry in InvoiceEntry._base_manager.filter(invoice=invoice):
            sums[entry.kind] += entry.amount
        assert max(sums["refund"], sums["reversal"]) <= sums["payment"], order
        assert sums["credit_note"] + sums["write_off"] <= invoice.total, order
        assert still_open(acme, invoice) >= -sums["payment"], order
    assert_books_hold()


@pytest.mark.django_db(transaction=True)
def test_one_reference_on_two_invoices_at_once_books_one(acme: Customer) -> None:
    invoices = [invoice_for(acme, 66_666_667, seconds=n) for n in (1, 2)]
    jobs = [lambda i=i: book(acme, i, "credit_note", "1.00", reference="note 1").amount for i in invoices * 3]
    assert side_by_side(jobs) == {"1.00": 3, "Conflict": 3}
    assert everything(InvoiceEntry).get().number == 1
    assert_books_hold()


# --- whose payment it is -------------------------------------------------------------------------------------------


def test_a_page_of_something_else_does_not_pay_for_credit(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    """A payer may choose the name that a payment link of the same account reports (`client_reference_id`): what was
    paid for something else would be credit as well."""
    payment_id = bought(owner)
    session = {**stripe.session(payment_id), "id": "cs_of_a_payment_link", "payment_intent": "pi_link"}
    assert told(event(DONE, session)) == 204
    assert (state_of(owner, payment_id)[0], credit(cast)) == ("started", 0)
    found = Discrepancy.objects.get()
    assert (found.kind, found.request_id) == ("payment_differs", payment_id)
    assert "cs_of_a_payment_link" in str(found.details)
    told(event(DONE, stripe.session(payment_id)))
    assert (state_of(owner, payment_id)[0], credit(cast)) == ("paid", 25)
    looked_into()
    assert_books_hold()


def looked_into() -> None:
    Discrepancy.objects.update(resolved_at=timezone.now(), resolved_by="usr", note="another page's")


def test_the_page_of_another_tenant_pays_for_that_tenant(
    owner: Api, stranger: Api, cast: Cast, stripe: FakeStripe
) -> None:
    mine, theirs = bought(owner), bought(stranger)
    told(event(DONE, {**stripe.session(theirs), "client_reference_id": mine}))
    assert (state_of(owner, mine)[0], credit(cast)) == ("started", 0)
    told(event(DONE, stripe.session(theirs)))
    assert (state_of(stranger, theirs)[0], credit(cast)) == ("paid", 0)
    looked_into()
    assert_books_hold()


def test_news_of_one_second_in_either_order_comes_to_the_same(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    """Stripe's clock has whole seconds: a refund that fails at once is told with its making's own time."""
    for n, order in enumerate(permutations(["succeeded", "failed"])):
        payment_id, now = bought(owner), int(time.time())
        told(event(DONE, stripe.session(payment_id)))
        for status in order:
            back = refund(intent_of(stripe, payment_id), 1000, name=f"re_{n}", status=status)
            kind = "refund.failed" if status == "failed" else "refund.created"
            told(event(kind, back, at=now))
        assert state_of(owner, payment_id) == ("paid", "0.00"), order
    assert {row.amount for row in everything(TakenBack)} == {0}
    assert_books_hold()


@pytest.mark.parametrize("secret", ["", " ", "\t"])
def test_without_a_secret_nothing_is_believed(owner: Api, cast: Cast, stripe: FakeStripe, secret: str) -> None:
    body = event(DONE, stripe.session(bought(owner)))
    with override_settings(STRIPE_WEBHOOK_SECRET=secret):
        assert told(body, header=signature(body, secret=secret)) == 404
        assert owner.get("payments/options")[1]["available"] is False
        assert owner.post("payments", {"kind": "credit", "amount": "5"})[0] == 404
    assert credit(cast) == 0


# --- credit whose time ends while a request runs -------------------------------------------------------------------


def prepaid(acme: Customer, amount: str) -> Any:
    """Credit that has just expired, before the sweep; nothing may be owed beyond it."""
    found = grant(acme, amount, expires=timezone.now() - SECOND)
    acme.limit({"postpaid_limit": D(0)})
    return found


@pytest.mark.django_db(transaction=True)
def test_what_runs_on_credit_keeps_it_until_it_ends(acme: Customer) -> None:
    found = prepaid(acme, "1")
    run_sync(acme.reserve("req_1", amount=D("0.15")))
    tasks.expire_credit()
    assert gone(found) == [("expired", D("0.85"))]
    quota = acme.quota()
    assert quota.owed + quota.held <= quota.postpaid_limit  # nothing that was let in has lost its ground


@pytest.mark.django_db(transaction=True)
def test_what_was_let_in_on_credit_is_paid_by_it(acme: Customer) -> None:
    """It ends, and comes into the books, after the expiry and its sweep."""
    found, now = prepaid(acme, "1"), timezone.now()
    run_sync(acme.reserve("req_1", amount=D("0.15"), ttl_seconds=600))
    tasks.expire_credit()
    began = {"started_at": found.expires_at - SECOND, "finished_at": now}
    counts = {"prompt_tokens": MILLION, "cached_tokens": 0, "completion_tokens": 0}
    settle(acme, "req_1", **counts, **began)
    tasks.expire_credit()
    assert run_sync(tenant_balance(tenant_id=acme.tenant.id)).owed == 0
    statement = close_period(tenant=acme.tenant, actor="usr")
    assert (statement.credit_used, statement.due) == (D("0.15"), 0)
    tasks.expire_credit()
    assert gone(found) == [("expired", D("0.85")), ("used", D("0.15"))]
    assert_books_hold()


def settle(customer: Customer, request_id: str, **more: Any) -> None:
    price = run_sync(price_by_id(customer.price.id))
    ending = settling(request_id=request_id, amount=D("0.15"), tokens=MILLION)
    run_sync(record_usage(**customer.usage(request_id, **more), price=price, ending=ending))


# --- the clock -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zone, now, overdue",
    [
        ("Pacific/Auckland", datetime(2026, 6, 10, 13, tzinfo=UTC), True),  # the 11th there
        ("Pacific/Auckland", datetime(2026, 6, 10, 11, 59, tzinfo=UTC), False),
        ("America/Los_Angeles", datetime(2026, 6, 11, 6, 59, tzinfo=UTC), False),  # still the 10th there
        ("America/Los_Angeles", datetime(2026, 6, 11, 7, tzinfo=UTC), True),
        ("UTC", datetime(2026, 6, 10, 23, 59, tzinfo=UTC), False),
        ("UTC", datetime(2026, 6, 11, tzinfo=UTC), True),
    ],
)
def test_an_invoice_is_overdue_by_its_own_calendar(
    zone: str, now: datetime, overdue: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invoice_shapes.timezone, "now", lambda: now)
    assert invoice_shapes._is_overdue(Invoice(due_on=date(2026, 6, 10), time_zone=zone)) is overdue


# --- messages ------------------------------------------------------------------------------------------------------


def test_a_webhook_that_is_deleted_while_it_is_called_stops_nobody_elses(
    owner: Api, cast: Cast, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed, other = register(owner, hook), register(owner, hook)
    alert(cast)
    send = delivery.send

    def sent(each: Any, fetcher: Any) -> Any:
        outcome = send(each, fetcher)
        if each.endpoint_id == doomed["id"]:
            with tenant_scope(cast.acme.id):
                delete_endpoint(tenant=cast.acme, endpoint_id=doomed["id"], actor="usr")
        return outcome

    monkeypatch.setattr(delivery, "send", sent)
    assert delivery.send_due(LOCAL) == 2
    [left] = owner.get(f"webhooks/{other['id']}/deliveries")[1]["data"]
    assert left["state"] == "delivered"
