"""What a new price would change: each request priced anew in Python says the same."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.billing.models import Price, UsageEvent
from controlplane.billing.preview import last_month
from controlplane.billing.pricing import PinnedPrice, amount_of
from controlplane.billing.services import record_usage
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.conftest import Api
from tests.controlplane.money import BASE, Customer, D, customer_named

MAY = {"from": "2026-05-01T00:00:00Z", "to": "2026-06-01T00:00:00Z"}
NEW = {"base_model": BASE, "input": "0.3", "cached_input": "0.1", "output": "0.9", **MAY}
PIRATE = {"adapter_id": "adp_1", "adapter_version_id": "adv_1", "model": "pirate@1"}


@pytest.fixture
def list_price(db: None) -> Price:
    return Price.objects.create(
        base_model=BASE, input=D("0.2"), cached_input=D("0.1"), output=D("0.8"), created_by="test"
    )  # fmt: skip


def use(customer: Customer, price: Price, **more: Any) -> None:
    run_sync(record_usage(**customer.usage(new_id("req"), price_id=price.id, **more)))


def preview(platform: Api, **more: Any) -> dict[str, Any]:
    status, body = platform.post("operator/prices/preview", NEW | more)
    assert status == 200, body
    return dict(body)


def test_the_effect_is_that_of_pricing_each_request_anew(
    acme: Customer, globex: Customer, list_price: Price, platform: Api
) -> None:
    for prompt, cached, completion in ((7, 2, 3), (100, 0, 50), (5, 5, 0)):
        for customer in (acme, globex):
            tokens = {"prompt_tokens": prompt, "cached_tokens": cached, "completion_tokens": completion}
            use(customer, list_price, **tokens)
            use(customer, list_price, **tokens, **PIRATE, is_batch=True)
    body = preview(platform, adapter_surcharge="0.05", batch_discount=50)
    expected = D(0)
    for event in UsageEvent.objects.all():
        more, part = (D("0.05"), 2) if event.adapter_id else (D(0), 1)
        rates = [(D(NEW[name]) + more) / part for name in ("input", "cached_input", "output")]
        expected += amount_of(
            PinnedPrice("new", *rates), prompt=event.prompt_tokens, cached=event.cached_tokens,
            completion=event.completion_tokens,
        )  # fmt: skip
    before = sum(event.amount for event in UsageEvent.objects.all())
    total = body["total"]
    assert (D(total["before"]), D(total["after"]), total["requests"]) == (before, expected, 12)
    assert D(total["change"]) == expected - before
    assert sum(D(row["after"]) for row in body["data"]) == expected
    assert {row["tenant"] for row in body["data"]} == {"Acme", "Globex"}
    assert Price.objects.filter(input=D("0.3")).count() == 0


@pytest.fixture
def globex(db: None) -> Customer:
    return customer_named("globex")


def test_usage_of_a_more_specific_price_would_not_change(acme: Customer, list_price: Price, platform: Api) -> None:
    """Acme has a price of its own: a new list price is not for it, a new price of Acme's or of the adapter is."""
    use(acme, acme.price)
    use(acme, list_price)
    use(acme, acme.price, **PIRATE)
    adapter_price = Price.objects.create(
        base_model=BASE, adapter_id="adp_1", input=1, cached_input=1, output=1, created_by="test"
    )  # fmt: skip
    use(acme, adapter_price, **PIRATE)
    requests = {
        "list": preview(platform)["total"]["requests"],
        "tenant": preview(platform, tenant_id=acme.tenant.id)["total"]["requests"],
        "adapter": preview(platform, adapter_id="adp_1")["total"]["requests"],
        "both": preview(platform, adapter_id="adp_1", tenant_id=acme.tenant.id)["total"]["requests"],
    }
    assert requests == {"list": 1, "tenant": 3, "adapter": 2, "both": 2}


def test_only_the_base_model_and_the_range_that_were_asked(acme: Customer, list_price: Price, platform: Api) -> None:
    use(acme, list_price, base_model="other")
    use(acme, list_price, finished_at=datetime(2026, 6, 1, tzinfo=UTC))
    body = preview(platform)
    assert (body["data"], body["total"]["requests"], body["total"]["change_percent"]) == ([], 0, None)


def test_last_month_is_a_calendar_month() -> None:
    for now, start, end in (
        ("2026-03-31T23:00+00:00", "2026-02-01", "2026-03-01"),
        ("2026-01-01T00:30+01:00", "2025-11-01", "2025-12-01"),
    ):
        found = last_month(datetime.fromisoformat(now))
        assert [f"{each:%Y-%m-%d}" for each in found] == [start, end]


@pytest.mark.parametrize(
    "wrong, param",
    [({"cached_input": "0.4"}, "cached_input"), ({"input": "-1"}, "input"), ({"output": "10001"}, "output"),
     ({"to": "2026-04-01T00:00:00Z"}, "from"), ({"batch_discount": 101}, "batch_discount")],
)  # fmt: skip
def test_what_cannot_be_a_price_or_a_range_is_refused(platform: Api, wrong: dict[str, Any], param: str) -> None:
    status, body = platform.post("operator/prices/preview", NEW | wrong)
    assert (status, body["error"]["param"]) == (400, param)
    assert platform.post("operator/prices/preview", NEW | {"tenant_id": "ten_none"})[0] == 404
