"""Every field of money or of a count of it: what is no number, below nothing or beyond all bounds is refused by its
field's name, and changes nothing."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing.models import Invoice
from controlplane.billing.statements import close_period
from tests.controlplane.billing.fake_stripe import FakeStripe
from tests.controlplane.billing.paying import customer, stripe, use, web
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import BASE

__all__ = ["stripe", "web"]
NO_NUMBERS: tuple[Any, ...] = (
    "NaN", "-NaN", "sNaN", "Infinity", "-Infinity", "1e30", "-1", "-0.01", "1e-30", "", " ", "1,5", "0x10", "x", "\x00",
    "1" * 5000, True, [], {}, 10**40, -(10**40), 1e-300, "9" * 19,
)  # fmt: skip
TABLES = (
    "billing_price", "billing_grant", "billing_agreement", "billing_invoiceentry", "billing_billingprofile",
    "billing_payment", "billing_markup", "billing_ledgerentry", "quotas_quota", "tenants_auditrow",
)  # fmt: skip
Call = Callable[[Any], tuple[int, Any]]


@pytest.fixture
def calls(cast: Cast, owner: Api, operator: Api, stripe: FakeStripe) -> dict[str, Call]:
    """By field. Each sends a body that is right but for that field."""
    use(customer(cast), 10**6)
    invoice = Invoice._base_manager.get(statement=close_period(tenant=cast.acme, actor="usr"))
    tenant, limits = f"operator/tenants/{cast.acme.id}", f"operator/tenants/{cast.acme.id}/limits"
    rates = {"base_model": BASE, "input": "2", "cached_input": "0", "output": "2"}
    key = owner.get("keys")[1]["data"][0]["id"]
    found: dict[str, Call] = {}
    for name in ("input", "cached_input", "output", "adapter_surcharge", "batch_discount"):
        found[f"prices {name}"] = lambda value, name=name: operator.post("operator/prices", {**rates, name: value})
        path = "operator/prices/preview"
        found[f"preview {name}"] = lambda value, name=name, path=path: operator.post(path, {**rates, name: value})
    found["grants amount"] = lambda value: operator.post(f"{tenant}/grants", {"amount": value})
    for name in ("minimum_fee", "included_tokens"):
        found[f"agreements {name}"] = lambda value, name=name: operator.post(f"{tenant}/agreements", {name: value})
    for name in ("at_least", "discount"):
        found[f"tiers {name}"] = lambda value, name=name: operator.post(
            f"{tenant}/agreements", {"tiers": [{"at_least": "1", "discount": "1", name: value}]}
        )
    for name in ("tax_rate", "payment_days"):
        found[f"profile {name}"] = lambda value, name=name: operator.patch(f"{tenant}/billing-profile", {name: value})
    entries = f"{tenant}/invoices/{invoice.id}/entries"
    for kind in ("payment", "credit_note", "write_off", "refund", "reversal"):
        found[f"{kind} amount"] = lambda value, kind=kind: operator.post(
            entries, {"kind": kind, "amount": value, "reason": "because"}
        )
    counts = ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "tokens_per_month", "concurrency")
    budgets = ("monthly_budget", "total_budget", "soft_budget")
    for name in (*counts, *budgets, "postpaid_limit", "tenant_weight"):
        found[f"tenant {name}"] = lambda value, name=name: operator.put(limits, {name: value})
    for name in (*counts, *budgets):
        found[f"key {name}"] = lambda value, name=name: owner.put(f"keys/{key}/limits", {name: value})
    found["payments amount"] = lambda value: owner.post("payments", {"kind": "credit", "amount": value})
    return found


def rows() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in TABLES)}")
        return list(cursor.fetchone())


def test_no_number_no_money(calls: dict[str, Call]) -> None:
    before = rows()
    for name, call in calls.items():
        for value in NO_NUMBERS:
            status, body = call(value)
            assert status == 400, (name, value, status, body)
            assert body["error"]["message"], (name, value)
            assert name.split()[-1] in (body["error"]["param"] or ""), (name, value, body)
    assert rows() == before


def test_numbers_that_json_does_not_have(calls: dict[str, Call], cast: Cast, operator: Api) -> None:
    before = rows()
    for literal in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1e-999999999", b"9" * 5000):
        raw = operator.raw(
            "POST", f"operator/tenants/{cast.acme.id}/grants", data=b'{"amount": ' + literal + b"}",
            content_type="application/json",
        )  # fmt: skip
        assert raw.status_code == 400, (literal, raw.content)
        assert json.loads(raw.content)["error"]["type"]
    assert rows() == before


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(amount=st.decimals(allow_nan=False, allow_infinity=False, places=8) | st.decimals(-10, 10, places=2))
def test_what_is_given_is_what_was_said(cast: Cast, operator: Api, amount: Decimal) -> None:
    """To the last digit, or refused."""
    status, body = operator.post(f"operator/tenants/{cast.acme.id}/grants", {"amount": f"{amount.normalize():f}"})
    is_fine = 0 < amount <= 10**9 and amount == round(amount, 6)
    assert (status == 201) is is_fine, (amount, body)
    assert not is_fine or Decimal(body["amount"]) == amount
