"""Invoices paid through Stripe: what they still ask for, whatever becomes of the money afterwards."""

import time

from controlplane.billing.models import Payment
from tests.controlplane.billing.fake_stripe import FakeStripe, dispute, event, refund
from tests.controlplane.billing.paying import (
    DONE,
    GIVEN,
    TAKEN,
    asks,
    credit,
    intent_of,
    invoiced,
    pay,
    stripe,
    told,
    web,
)
from tests.controlplane.billing.test_invoices import assert_books_hold
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import everything

__all__ = ["stripe", "web"]


def test_an_invoice_is_paid_for_what_it_still_asks(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    invoice = invoiced(cast, 40)
    payment_id = pay(owner, invoice)
    assert stripe.asked[-1]["line_items[0][price_data][unit_amount]"] == "4000"
    told(event(DONE, stripe.session(payment_id)))
    assert (asks(cast, invoice), credit(cast)) == (0, 0)
    body = owner.get(f"invoices/{invoice.id}")[1]
    assert (body["state"], body["entries"][0]["kind"], body["entries"][0]["reference"]) == (
        "paid",
        "payment",
        payment_id,
    )
    status, refused = owner.post("payments", {"kind": "invoice", "invoice_id": invoice.id})
    assert (status, refused["error"]["code"]) == (409, "nothing_to_pay")
    assert_books_hold()


def test_an_invoice_that_is_paid_twice_leaves_credit(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    invoice = invoiced(cast, 40)
    first, second = pay(owner, invoice), pay(owner, invoice)
    for each in (first, second):
        told(event(DONE, stripe.session(each)))
    assert (asks(cast, invoice), credit(cast)) == (0, 40)
    told(event("refund.created", refund(intent_of(stripe, second), 4000)))
    assert (asks(cast, invoice), credit(cast)) == (0, 0)
    assert_books_hold()


def test_a_disputed_invoice_asks_again_until_the_dispute_is_won(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    invoice = invoiced(cast, 40)
    payment_id = pay(owner, invoice)
    intent, now = intent_of(stripe, payment_id), int(time.time())
    told(event(DONE, stripe.session(payment_id)))
    told(event(TAKEN, dispute(intent, 4000), at=now + 1))
    assert (asks(cast, invoice), credit(cast)) == (40, -40)
    told(event(GIVEN, dispute(intent, 4000), at=now + 2))
    told(event(TAKEN, dispute(intent, 4000), at=now + 1, name="evt_late"))  # the first news once more, late
    assert (asks(cast, invoice), credit(cast)) == (0, 0)
    kinds = [entry["kind"] for entry in owner.get(f"invoices/{invoice.id}")[1]["entries"]]
    assert kinds == ["payment", "reversal", "payment"]
    assert_books_hold()


def test_anothers_invoice_is_missing(owner: Api, stranger: Api, cast: Cast, stripe: FakeStripe) -> None:
    invoice = invoiced(cast, 40)
    for wanted in (invoice.id, "ivc_none"):
        assert stranger.post("payments", {"kind": "invoice", "invoice_id": wanted})[0] == 404
    assert owner.post("payments", {"kind": "invoice"})[1]["error"]["param"] == "invoice_id"
    assert everything(Payment).count() == 0
