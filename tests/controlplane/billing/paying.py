"""What the tests of payments share: a Stripe of the tests' own, its news, and a tenant that owes something."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from controlplane.billing.invoices import invoice_named, open_amount
from controlplane.billing.models import Invoice, Price
from controlplane.billing.queries import tenant_balance
from controlplane.billing.services import record_usage
from controlplane.billing.statements import close_period
from tenants.ids import new_id
from tenants.key_services import issue_key
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.billing.fake_stripe import KEY, SECRET, FakeStripe, signature
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import BASE, Customer, D
from tests.controlplane.web import Web

DONE = "checkout.session.completed"
TAKEN, GIVEN = "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web() as found:
        yield found


@pytest.fixture
def stripe(web: Web) -> Iterator[FakeStripe]:
    fake = FakeStripe(web)
    with override_settings(STRIPE_KEY=KEY, STRIPE_WEBHOOK_SECRET=SECRET, STRIPE_API_URL=fake.url):
        yield fake


def told(body: bytes, *, header: str | None = None) -> int:
    response = Api().raw(
        "POST", "stripe/notices", None, data=body, content_type="application/json",
        headers={"Stripe-Signature": signature(body) if header is None else header},
    )  # fmt: skip
    return int(response.status_code)


def bought(owner: Api, amount: str = "25.00") -> str:
    status, body = owner.post("payments", {"kind": "credit", "amount": amount})
    assert status == 201, body
    return str(body["id"])


def state_of(owner: Api, payment_id: str) -> tuple[str, str]:
    [found] = [row for row in owner.get("payments")[1]["data"] if row["id"] == payment_id]
    return found["state"], found["reversed"]


def credit(cast: Cast) -> Any:
    found = run_sync(tenant_balance(tenant_id=cast.acme.id))
    return found.credit - found.owed


def intent_of(stripe: FakeStripe, payment_id: str) -> str:
    return str(stripe.session(payment_id)["payment_intent"])


def customer(cast: Cast) -> Customer:
    """Acme with a price, as old as its usage."""
    cast.acme.created_at = timezone.now() - timedelta(days=40)
    cast.acme.save()
    return Customer(cast.acme, _key(cast), _price(cast))


def _key(cast: Cast) -> Any:
    return issue_key(tenant=cast.acme, name="k", scopes=("inference",), actor=None)[0]


def _price(cast: Cast) -> Any:
    rates = {"input": D(1), "cached_input": D(1), "output": D(1)}
    return Price.objects.create(base_model=BASE, tenant=cast.acme, created_by="test", **rates)


def use(acme: Customer, tokens: int) -> None:
    at = timezone.now() - timedelta(seconds=5)
    counts = {"prompt_tokens": tokens, "cached_tokens": 0, "completion_tokens": 0}
    run_sync(record_usage(**acme.usage(new_id("req"), **counts, started_at=at, finished_at=at)))


def invoiced(cast: Cast, dollars: int) -> Invoice:
    use(customer(cast), dollars * 10**6)
    statement = close_period(tenant=cast.acme, actor="usr")
    return Invoice.objects.get(statement=statement)


def asks(cast: Cast, invoice: Invoice) -> Any:
    with tenant_scope(cast.acme.id):
        return open_amount(invoice_named(cast.acme, invoice.id))


def pay(owner: Api, invoice: Invoice) -> str:
    status, body = owner.post("payments", {"kind": "invoice", "invoice_id": invoice.id})
    assert status == 201, body
    return str(body["id"])
