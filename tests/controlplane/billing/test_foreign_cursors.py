"""A page's cursor of one tenant, or one that somebody made up, opens nothing of another."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind, Price
from controlplane.billing.services import record_usage
from controlplane.billing.statements import close_period
from controlplane.quotas.services import reserve
from tenants.ids import new_id
from tenants.models import ApiKey, Tenant
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import BASE, Customer, D

LISTS = ("grants", "statements", "invoices", "usage/generations", "payments", "alerts", "keys", "audit")


def busy(tenant: Tenant, name: str) -> None:
    """Two of each."""
    tenant.created_at -= timedelta(days=40)
    tenant.save()
    rates = {"input": D(1), "cached_input": D(1), "output": D(1)}
    price = Price.objects.create(base_model=BASE, tenant=tenant, created_by="test", **rates)
    key = ApiKey.objects.filter(tenant=tenant).first()
    assert key
    customer = Customer(tenant, key, price)
    for n in range(2):
        grant_credit(tenant=tenant, amount=D(1), kind=GrantKind.PROMO, actor="usr", reference=f"{name} {n}")
        request_id = new_id("req")
        run_sync(reserve(
            request_id=request_id, tenant_id=tenant.id, key_id=customer.key.id, tokens=10, amount=D("0.001"),
            ttl_seconds=60,
        ))  # fmt: skip
        at = tenant.created_at + timedelta(days=1 + 10 * n)
        run_sync(record_usage(**customer.usage(request_id, started_at=at, finished_at=at)))
        close_period(tenant=tenant, actor="usr", until=at + timedelta(days=1))


def ids(page: dict[str, Any]) -> set[str]:
    return {str(row["id"]) for row in page["data"]}


@pytest.fixture
def both(cast: Cast) -> Cast:
    busy(cast.acme, "base-a")
    busy(cast.globex, "base-g")
    return cast


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_of_another_opens_none_of_theirs(both: Cast, owner: Api, stranger: Api, path: str) -> None:
    theirs = stranger.get(f"{path}?limit=1")[1]
    everything_of_theirs = ids(stranger.get(f"{path}?limit=200")[1])
    cursors = [theirs["next"]] if theirs["next"] else []
    for at in ("9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+00:00", "2026-01-01T00:00:00+14:00"):
        for pk in ("~", "", 0, -1, 10**30, True, "%", "'; --"):
            cursors.append(base64.urlsafe_b64encode(json.dumps([at, pk]).encode()).decode().rstrip("="))
    for cursor in cursors:
        status, page = owner.get(f"{path}?limit=200&cursor={cursor}")
        assert status in (200, 400), (cursor, page)
        assert status == 400 or not ids(page) & everything_of_theirs


@pytest.mark.parametrize("name", ["%00", "ivc_%00", "..%2f..", "%F0%9F%92%B8", "x" * 300])
@pytest.mark.parametrize(
    "path",
    ["invoices/{}", "invoices/{}/pdf", "invoices/{}/csv", "statements/{}", "usage/generations/{}", "webhooks/{}"],
)
def test_names_that_nothing_has_are_missing(both: Cast, owner: Api, path: str, name: str) -> None:
    response = owner.raw("DELETE" if path.startswith("webhooks") else "GET", path.format(name))
    assert response.status_code == 404, response.content[:300]


@pytest.mark.parametrize("name", ["%00", "ten_%00", "x" * 300])
@pytest.mark.parametrize("path", ["grants", "close", "billing-profile", "invoices", "agreements", "limits"])
def test_tenants_that_are_none_are_missing(operator: Api, path: str, name: str) -> None:
    call = operator.post if path == "close" else operator.get
    assert call(f"operator/tenants/{name}/{path}", *([{}] if path == "close" else []))[0] == 404
