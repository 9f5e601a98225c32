"""An installation that bills in euros: from the price to the invoice, the payment and the mail, all of it says so."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.billing.alert_mail import mail_alerts
from controlplane.billing.alerts import raise_alert
from controlplane.billing.anomaly import find_unusual_spend
from controlplane.billing.models import Alert, AlertKind, Discrepancy, Invoice, Payment, Price
from controlplane.billing.services import record_usage
from controlplane.billing.terms import Terms, Tier
from controlplane.errors import InsufficientFunds
from controlplane.inference.alerting import find_alerts
from controlplane.quotas.models import Quota
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.billing.fake_stripe import FakeStripe, event
from tests.controlplane.billing.paying import DONE, asks, credit, stripe, told, web
from tests.controlplane.billing.test_agreements import agreed
from tests.controlplane.billing.test_invoices import assert_books_hold, text_of
from tests.controlplane.billing.test_markups import mark_up
from tests.controlplane.billing.test_markups import use as use_shared
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import BASE, Customer, D, another_key, customer_named, everything

__all__ = ["stripe", "web"]
DOLLARS = re.compile(r"\$|usd|dollar", re.IGNORECASE)
MONTH_AGO = timedelta(days=35)


@pytest.fixture(autouse=True)
def euros(settings: Settings) -> None:
    settings.CURRENCY = "EUR"


@pytest.fixture
def acme(cast: Cast, operator: Api) -> Customer:
    """As old as its usage, with a price that an operator set for it."""
    cast.acme.created_at = timezone.now() - MONTH_AGO
    cast.acme.save()
    body = {"base_model": BASE, "tenant_id": cast.acme.id, "input": "1", "cached_input": "1", "output": "1"}
    status, price = operator.post("operator/prices", body)
    assert status == 201, price
    return Customer(cast.acme, _key(cast), Price.objects.get(id=price["id"]))


def _key(cast: Cast) -> Any:
    return another_key(Customer(cast.acme, None, None))  # type: ignore[arg-type]  # neither is looked at


def use(acme: Customer, euros: str, ago: timedelta = timedelta(minutes=1), **more: Any) -> None:
    at = timezone.now() - ago
    counts = {"prompt_tokens": int(D(euros) * 10**6), "cached_tokens": 0, "completion_tokens": 0}
    run_sync(record_usage(**acme.usage(new_id("req"), **counts, started_at=at, finished_at=at) | more))


def no_dollars(*texts: Any) -> str:
    """All of it as one text, in which nothing is a dollar."""
    found = "\n".join(text if isinstance(text, str) else json.dumps(text, default=str) for text in texts)
    assert not DOLLARS.search(found), found
    return found


def test_the_search_would_find_them() -> None:
    for text in ("of $0.01", "Total in USD", '{"currency": "usd"}', "2 dollars"):
        with pytest.raises(AssertionError):
            no_dollars(text)


def test_an_invoice_from_price_to_payment(
    owner: Api, operator: Api, cast: Cast, acme: Customer, stripe: FakeStripe
) -> None:
    agreed(acme, Terms(D("30.00"), 1_000_000, "graduated", (Tier(D(10), D(10)),)), timezone.now() - MONTH_AGO)
    use(acme, "19.5")
    mark_up(customer_named("maker"), acme, "2")
    at = timezone.now() - timedelta(minutes=1)
    use_shared(acme, 10**6, started_at=at, finished_at=at)
    status, statement = operator.post(f"operator/tenants/{cast.acme.id}/close", {})
    assert status == 200, statement
    [row] = owner.get("invoices")[1]["data"]
    status, invoice = owner.get(f"invoices/{row['id']}")
    assert (row["currency"], invoice["currency"], invoice["total"]) == ("EUR", "EUR", row["total"])
    labels = no_dollars([line["label"] for line in invoice["lines"]])
    assert re.search(r"Discount on 19\.\d+ EUR of usage", labels)
    assert "1,000,000 tokens at 2 EUR per million" in labels
    assert re.search(r"Up to the minimum fee of \d+\.\d\d EUR", labels)
    pdf = text_of(owner.raw("GET", f"invoices/{row['id']}/pdf").content)
    csv = b"".join(owner.raw("GET", f"invoices/{row['id']}/csv").streaming_content).decode()
    no_dollars(statement, invoice, csv, pdf, owner.get(f"statements/{statement['id']}")[1])
    assert "Total in EUR" in pdf
    assert re.search(r"Output\s+tokens\s+EUR\s", pdf)

    status, payment = owner.post("payments", {"kind": "invoice", "invoice_id": row["id"]})
    assert (status, payment["currency"], payment["amount"]) == (201, "EUR", invoice["total"])
    asked = stripe.asked[-1]
    assert asked["line_items[0][price_data][currency]"] == "eur"
    assert asked["line_items[0][price_data][unit_amount]"] == str(int(D(invoice["total"]) * 100))
    told(event(DONE, stripe.session(payment["id"])))
    assert asks(cast, Invoice.objects.get(id=row["id"])) == 0
    no_dollars(asked, owner.get("payments")[1], owner.get(f"invoices/{row['id']}")[1])
    assert_books_hold()


def test_dollars_that_come_for_euros_are_not_booked(owner: Api, cast: Cast, stripe: FakeStripe) -> None:
    status, payment = owner.post("payments", {"kind": "credit", "amount": "25.00"})
    assert (status, payment["currency"]) == (201, "EUR")
    told(event(DONE, stripe.session(payment["id"], currency="usd")))
    assert (credit(cast), Payment.objects.get().state) == (0, "started")
    assert Discrepancy.objects.get().details["asked"].startswith("25.00 eur on ")
    told(event(DONE, stripe.session(payment["id"]), name="evt_right"))
    assert credit(cast) == 25


def test_refusals(owner: Api, operator: Api, cast: Cast, acme: Customer, stripe: FakeStripe) -> None:
    path = f"operator/tenants/{cast.acme.id}"
    price = {"base_model": BASE, "input": "10001", "cached_input": "0", "output": "0"}
    assert operator.post(f"{path}/grants", {"amount": "5", "reference": "r1"})[0] == 201
    use(acme, "9")
    operator.post(f"{path}/close", {})
    [invoice] = owner.get("invoices")[1]["data"]
    entries = f"{path}/invoices/{invoice['id']}/entries"
    entry = {"kind": "payment", "amount": "3.50", "reason": "bank", "reference": "b1"}
    assert operator.post(entries, entry)[0] == 201
    refused = {
        "2.50 EUR per million tokens is written 2.5": operator.post("operator/prices", price),
        "has given 5 EUR (promo) before": operator.post(f"{path}/grants", {"amount": "6", "reference": "r1"}),
        "use 1 EUR to 50000 EUR, with at most 2 decimals": owner.post("payments", {"kind": "credit", "amount": "0.5"}),
        "asks for 0.50 EUR: less than 1 EUR": owner.post(
            "payments", {"kind": "invoice", "invoice_id": invoice["id"]}
        ),
        "has booked a payment of 3.50 EUR on": operator.post(entries, entry | {"amount": "3.00"}),
        "still asks for is 0.50 EUR: use at most that": operator.post(
            entries, entry | {"amount": "1.00", "reference": "b2"}
        ),
    }  # fmt: skip
    for words, (status, body) in refused.items():
        assert 400 <= status < 500
        assert words in no_dollars(body["error"]["message"])


@pytest.mark.parametrize(
    "limit, words",
    [
        ({"budget": D("0.01")}, "of 0.01 EUR, 0 EUR is spent and 0.008 EUR held"),
        ({"postpaid_limit": D("0.01")}, "may owe 0.01 EUR beyond its credit, and has 0.002 EUR left of both"),
    ],
    ids=["budget", "postpaid limit"],
)
def test_a_request_that_no_money_is_left_for(acme: Customer, limit: Any, words: str) -> None:
    acme.limit(limit)
    run_sync(acme.reserve("req_1", amount=D("0.008")))
    with pytest.raises(InsufficientFunds) as refused:
        run_sync(acme.reserve("req_2", amount=D("0.004")))
    assert words in no_dollars(refused.value.message)
    assert "may cost 0.004 EUR" in refused.value.message


def test_alerts_by_mail_and_webhook(
    operator: Api, cast: Cast, acme: Customer, settings: Settings, mailoutbox: list[mail.EmailMessage]
) -> None:
    settings.EMAIL_HOST = "mail.example"
    acme.limit({"budget": D(10)})
    noon = timezone.now().replace(hour=12, minute=0) - timedelta(days=1)
    for days in range(1, 9):
        use(acme, "3", timezone.now() - noon + timedelta(days=days))
    use(acme, "30", timezone.now() - noon)
    operator.post(f"operator/tenants/{cast.acme.id}/close", {})
    Quota._base_manager.filter(subject=cast.acme.id).update(spent=D(6))
    assert find_unusual_spend(noon + timedelta(hours=1)) == 1
    assert find_alerts() == 2  # half of the budget, and the invoice
    assert mail_alerts() == 3
    subjects = no_dollars(*(sent.subject for sent in mailoutbox))
    assert "Acme has spent 30 EUR today, where 3 is usual" in subjects
    assert re.search(r"Invoice \S+ over 54\.00 EUR", subjects)
    for sent in mailoutbox:
        assert "currency: EUR" in no_dollars(sent.body)
    assert [alert.data["currency"] for alert in everything(Alert)] == ["EUR"] * 3


def test_an_alert_from_before_there_was_a_choice_is_mailed(
    cast: Cast, settings: Settings, mailoutbox: list[mail.EmailMessage]
) -> None:
    settings.EMAIL_HOST = "mail.example"
    data = {"number": "INV-1", "total": "54.00", "invoice_id": "ivc_1", "due_on": "2026-03-01"}
    raise_alert(tenant_id=cast.acme.id, kind=AlertKind.INVOICE_ISSUED, subject="i", occasion="issued", data=data)
    assert mail_alerts() == 1
    assert mailoutbox[0].subject.endswith("Invoice INV-1 over 54.00 EUR")


def test_a_session_and_usage_say_it(owner: Api, acme: Customer) -> None:
    use(acme, "1")
    assert owner.get("session")[1]["currency"] == "EUR"
    assert owner.get("usage?group_by=model")[1]["currency"] == "EUR"
