"""Payments through Stripe, against a server that speaks its wire format: in the books once, whatever is sent, how often
and in which order."""

import logging
import time
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing.models import (
    Discrepancy,
    Grant,
    GrantUse,
    LedgerEntry,
    Payment,
    PaymentReversal,
    ProviderNotice,
    TakenBack,
)
from controlplane.billing.statements import close_period
from tests.controlplane.billing.fake_stripe import KEY, SECRET, FakeStripe, dispute, event, refund, signature
from tests.controlplane.billing.paying import (
    DONE,
    GIVEN,
    TAKEN,
    bought,
    credit,
    customer,
    intent_of,
    state_of,
    stripe,
    told,
    use,
    web,
)
from tests.controlplane.billing.test_invoices import assert_books_hold
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import everything, side_by_side

__all__ = ["stripe", "web"]


# --- without a key ------------------------------------------------------------------------------------------------


def test_without_a_key_there_are_no_payments(owner: Api) -> None:
    assert owner.get("payments/options")[1]["available"] is False
    for call in (owner.post("payments", {"kind": "credit", "amount": "5"}), Api().post("stripe/notices", {})):
        assert (call[0], call[1]["error"]["code"]) == (404, "payments_not_configured")
    assert owner.get("payments")[1]["data"] == []


# --- starting -----------------------------------------------------------------------------------------------------


def test_credit_is_paid_for_on_stripes_page(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    assert owner.get("payments/options")[1] == {"available": True, "minimum": "1", "maximum": "50000"}
    status, body = owner.post("payments", {"kind": "credit", "amount": "25.00"})
    assert (status, body["state"], body["amount"], body["currency"]) == (201, "started", "25.00", "USD")
    assert body["url"] == "https://checkout.example/c/cs_test_1"
    [form] = stripe.asked
    assert form["client_reference_id"] == body["id"]
    assert form["line_items[0][price_data][unit_amount]"] == "2500"
    assert form["mode"] == "payment"
    assert credit(cast) == 0
    assert told(event(DONE, stripe.session(body["id"]))) == 204
    assert (state_of(owner, body["id"]), credit(cast)) == (("paid", "0.00"), 25)
    grant = everything(Grant).get()
    assert (grant.kind, grant.reference, grant.amount) == ("paid", body["id"], 25)
    assert_books_hold()


@pytest.mark.parametrize("amount", ["0", "0.99", "-5", "50000.01", "1.001", "NaN", "x", None])
def test_amounts_that_are_not_taken(owner: Api, stripe: FakeStripe, amount: str | None) -> None:
    status, body = owner.post("payments", {"kind": "credit", **({"amount": amount} if amount else {})})
    assert (status, body["error"]["param"]) == (400, "amount")
    assert stripe.asked == []
    assert everything(Payment).count() == 0


def test_a_stripe_that_is_away_takes_nothing_and_tells_no_secret(
    owner: Api, cast: Cast, stripe: FakeStripe, caplog: pytest.LogCaptureFixture
) -> None:
    stripe.fails = [400]
    with caplog.at_level(logging.DEBUG):
        status, body = owner.post("payments", {"kind": "credit", "amount": "25.00"})
    assert (status, body["error"]["code"]) == (503, "payment_provider_away")
    assert KEY not in caplog.text + str(body)
    assert SECRET not in caplog.text
    [row] = owner.get("payments")[1]["data"]
    assert row["state"] == "failed"


def test_a_stumble_is_tried_again_and_is_one_page(owner: Api, stripe: FakeStripe) -> None:
    stripe.fails = [500]
    bought(owner)
    assert (len(stripe.asked), len(stripe.by_key)) == (2, 1)


def test_another_tenants_payments_are_its_own(owner: Api, stranger: Api, stripe: FakeStripe) -> None:
    bought(owner)
    assert stranger.get("payments")[1]["data"] == []
    assert len(owner.get("payments")[1]["data"]) == 1


# --- notices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["none", "other secret", "other body", "old", "future garbage", "not utf-8", "no json"]
)
def test_what_stripe_did_not_sign_lately_has_no_effect(owner: Api, cast: Cast, stripe: FakeStripe, case: str) -> None:
    body = event(DONE, stripe.session(bought(owner)))
    match case:
        case "none":
            header = ""
        case "other secret":
            header = signature(body, secret="whsec_guess")
        case "other body":
            body, header = body.replace(b"2500", b"2501"), signature(body)
        case "old":
            header = signature(body, at=int(time.time()) - 301)
        case "future garbage":
            header = "t=soon,v1=00"
        case "not utf-8":
            body = b"\xff\xfe" + body
            header = signature(body)
        case _:
            body = b"[]"
            header = signature(body)
    assert told(body, header=header) == 400
    assert credit(cast) == 0
    assert everything(ProviderNotice).count() == 0


def test_the_same_event_again_is_one_payment(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    body = event(DONE, stripe.session(bought(owner)))
    assert [told(body) for _ in range(3)] == [204] * 3
    again = event("checkout.session.async_payment_succeeded", stripe.session(everything(Payment).get().id))
    assert told(again) == 204
    assert credit(cast) == 25
    assert_books_hold()


@pytest.mark.django_db(transaction=True)
def test_the_same_event_many_times_at_once_is_one_payment(
    transactional_db: None, cast: Cast, owner: Api, stripe: FakeStripe
) -> None:
    payment_id = bought(owner)
    paid = event(DONE, stripe.session(payment_id))
    back = event("refund.created", refund(intent_of(stripe, payment_id), 500))
    assert side_by_side([lambda: told(paid), lambda: told(back)] * 4) == {"204": 8}
    assert (credit(cast), everything(Grant).count(), state_of(owner, payment_id)) == (20, 1, ("paid", "5.00"))
    assert_books_hold()


def test_money_that_comes_later_is_waited_for(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    """A bank debit: the page is complete, the money is not there."""
    payment_id = bought(owner)
    told(event(DONE, stripe.session(payment_id, payment_status="unpaid")))
    assert (state_of(owner, payment_id)[0], credit(cast)) == ("started", 0)
    told(event("checkout.session.async_payment_failed", stripe.session(payment_id, payment_status="unpaid")))
    assert (state_of(owner, payment_id)[0], credit(cast)) == ("failed", 0)


def test_paid_is_final_whatever_is_heard_late(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    first, second = bought(owner), bought(owner)
    told(event(DONE, stripe.session(first)))
    told(event("checkout.session.expired", stripe.session(first)))
    told(event("checkout.session.expired", stripe.session(second)))
    told(event(DONE, stripe.session(second)))  # the payer was quicker than the news
    assert [state_of(owner, each)[0] for each in (first, second)] == ["paid", "paid"]
    assert credit(cast) == 50


@pytest.mark.parametrize(
    "more", [{"amount_total": 2501}, {"amount_total": 1}, {"currency": "eur"}, {"amount_total": 0}]
)
def test_another_amount_or_currency_is_not_booked_but_looked_at(
    owner: Api, cast: Cast, stripe: FakeStripe, more: dict[str, Any]
) -> None:
    payment_id = bought(owner)
    assert told(event(DONE, stripe.session(payment_id, **more))) == 204
    assert (state_of(owner, payment_id)[0], credit(cast)) == ("started", 0)
    found = Discrepancy.objects.get()
    assert (found.kind, found.request_id) == ("payment_differs", payment_id)


def test_what_is_not_ours_is_left_alone(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    session = stripe.session(bought(owner))
    for other in (None, "order_77"):
        assert told(event(DONE, {**session, "client_reference_id": other})) == 204
    assert told(event("customer.created", {"id": "cus_1", "object": "customer"})) == 204
    assert told(event("refund.created", refund("pi_other", 100))) == 204
    assert (credit(cast), Discrepancy.objects.count()) == (0, 0)
    told(event(DONE, {**session, "client_reference_id": "pay_unknown"}))
    assert Discrepancy.objects.get().kind == "payment_unknown"


# --- money that goes back -----------------------------------------------------------------------------------------


def test_a_refund_takes_back_the_credit_that_is_left(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    payment_id = bought(owner)
    told(event(DONE, stripe.session(payment_id)))
    intent = intent_of(stripe, payment_id)
    told(event("refund.created", refund(intent, 1000)))
    told(event("refund.updated", refund(intent, 1000)))
    assert (credit(cast), state_of(owner, payment_id)) == (15, ("paid", "10.00"))
    told(event("refund.created", refund(intent, 500, name="re_2")))
    told(event("refund.failed", refund(intent, 500, name="re_2", status="failed"), at=int(time.time()) + 5))
    assert (credit(cast), state_of(owner, payment_id)) == (15, ("paid", "10.00"))
    assert_books_hold()


def test_credit_that_was_used_is_owed_again(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    acme = customer(cast)
    payment_id = bought(owner)
    told(event(DONE, stripe.session(payment_id)))
    use(acme, 20_000_000)
    close_period(tenant=cast.acme, actor="usr")
    assert credit(cast) == 5
    intent = intent_of(stripe, payment_id)
    told(event(TAKEN, dispute(intent, 2500)))
    assert (credit(cast), state_of(owner, payment_id)) == (-20, ("paid", "25.00"))
    assert_books_hold()
    told(event(GIVEN, dispute(intent, 2500), at=int(time.time()) + 9))
    assert (credit(cast), state_of(owner, payment_id)) == (5, ("paid", "0.00"))
    assert_books_hold()


FACTS = ["paid", "paid again", "refund", "refund failed", "dispute", "dispute won", "second refund"]


def facts(stripe: FakeStripe, payment_id: str) -> dict[str, bytes]:
    intent, now = intent_of(stripe, payment_id), int(time.time())
    return {
        "paid": event(DONE, stripe.session(payment_id), at=now),
        "paid again": event("checkout.session.async_payment_succeeded", stripe.session(payment_id), at=now + 1),
        "refund": event("refund.created", refund(intent, 700, name=f"re_a_{intent}"), at=now + 2),
        "refund failed": event(
            "refund.failed", refund(intent, 700, name=f"re_a_{intent}", status="failed"), at=now + 3
        ),
        "dispute": event(TAKEN, dispute(intent, 2500, name=f"dp_{intent}"), at=now + 4),
        "dispute won": event(GIVEN, dispute(intent, 2500, name=f"dp_{intent}"), at=now + 5),
        "second refund": event("refund.created", refund(intent, 300, name=f"re_b_{intent}"), at=now + 6),
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.lists(st.sampled_from(FACTS), max_size=14))
def test_in_any_order_and_number_the_end_is_the_same(
    owner: Api, cast: Cast, stripe: FakeStripe, order: list[str]
) -> None:
    """What was said last of each refund and dispute counts, once the payment itself has been heard of."""
    payment_id = bought(owner)
    before = credit(cast)
    sent = facts(stripe, payment_id)
    for each in [*order, *FACTS]:
        assert told(sent[each]) == 204
    assert state_of(owner, payment_id) == ("paid", "3.00")
    assert credit(cast) - before == 22
    assert_books_hold()


def test_before_it_is_paid_nothing_goes_back(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    for order in permutations(["paid", "refund", "dispute"]):
        payment_id = bought(owner)
        sent, before = facts(stripe, payment_id), credit(cast)
        for each in order:
            told(sent[each])
        assert state_of(owner, payment_id) == ("paid", "25.00")  # what is disputed and refunded is not taken twice
        assert credit(cast) == before
    assert_books_hold()


def test_books_that_miss_a_payment_are_found_out(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    payment_id = bought(owner)
    Payment._base_manager.filter(id=payment_id).update(state="paid")
    with pytest.raises(AssertionError, match="each payment is in the books once"):
        assert_books_hold()


def test_what_was_booked_of_payments_cannot_be_changed(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    payment_id = bought(owner)
    told(event(DONE, stripe.session(payment_id)))
    told(event("refund.created", refund(intent_of(stripe, payment_id), 100)))
    for model in (PaymentReversal, GrantUse, LedgerEntry):
        assert everything(model).count() > 0
    assert everything(TakenBack).get().amount == 1
