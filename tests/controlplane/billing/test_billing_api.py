"""Usage, prices, grants and statements over HTTP: shapes, zones, strangers and mistakes."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from controlplane.billing.models import Discrepancy, Price
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.services import record_usage
from tenants.models import ApiKey, AuditRow
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.money import AT, BASE, Customer, D

MAY = {"from": "2026-05-01T00:00:00Z", "to": "2026-06-01T00:00:00Z"}


def _query(path: str, **more: str) -> str:
    return f"{path}?" + "&".join(f"{name}={value}" for name, value in {**MAY, **more}.items())


@pytest.fixture
def used(cast: Cast) -> Customer:
    """Acme has used 17 prompt tokens (4 cached) and 9 completion tokens, 36 s of the device; Globex something else."""
    with tenant_scope(ALL_TENANTS):
        keys = {key.tenant_id: key for key in ApiKey.objects.all()}
    cast.acme.created_at = AT - timedelta(days=9)
    cast.acme.save()
    price = set_price(base_model=BASE, rates=Rates(input=D(2), cached_input=D(1), output=D(4)), actor="usr")
    acme, globex = (Customer(tenant, keys[tenant.id], price) for tenant in (cast.acme, cast.globex))
    pirate = {"adapter_id": "adp_1", "adapter_version_id": "adv_1", "model": "pirate@1"}
    run_sync(record_usage(**acme.usage("req_1", device_ns=9 * 10**9)))
    run_sync(record_usage(**acme.usage("req_2", prompt_tokens=10, completion_tokens=6, device_ns=27 * 10**9, **pirate)))
    run_sync(record_usage(**globex.usage("req_3", prompt_tokens=1000)))
    return acme


@override_settings(DEVICE_COST_PER_HOUR="0.40")
def test_usage_by_adapter(used: Customer, owner: Api) -> None:
    status, body = owner.get(_query("usage"))
    pirate, base = body["data"]
    assert status == 200
    assert pirate == {
        "group": "adp_1", "label": "pirate", "requests": 1, "prompt_tokens": 10, "cached_tokens": 2,
        "completion_tokens": 6, "device_seconds": "27", "amount": "0.000042", "cost": "0.003", "amount_per_1m": "2.625",
        "cost_per_1m": "187.5",
    }  # fmt: skip
    assert (base["label"], base["amount"], base["cost"]) == (BASE, "0.000024", "0.001")
    assert body["total"] == {
        "requests": 2, "prompt_tokens": 17, "cached_tokens": 4, "completion_tokens": 9, "device_seconds": "36",
        "amount": "0.000066", "cost": "0.004", "amount_per_1m": "2.538462", "cost_per_1m": "153.846154",
    }  # fmt: skip
    assert (body["from"], body["to"], body["tz"]) == ("2026-05-01T00:00:00+00:00", "2026-06-01T00:00:00+00:00", "UTC")


def test_usage_by_day_in_a_zone_and_the_series(used: Customer, owner: Api) -> None:
    [row] = owner.get(_query("usage", group_by="day", tz="Asia/Kolkata"))[1]["data"]
    assert (row["group"], row["label"], row["requests"]) == ("2026-05-17T00:00:00+05:30", "2026-05-17", 2)
    [row] = owner.get(_query("usage", group_by="hour", tz="Asia/Kolkata"))[1]["data"]
    assert (row["group"], row["label"]) == ("2026-05-17T18:00:00+05:30", "2026-05-17 18:00")
    body = owner.get(_query("usage/timeseries", step="hour", split="key"))[1]
    [point] = body["data"]
    assert (body["step"], body["tz"]) == ("hour", "UTC")
    assert point == {
        "at": "2026-05-17T12:00:00+00:00", "group": used.key.id, "label": "acme program", "requests": 2, "tokens": 26,
        "amount": "0.000066", "cost": point["cost"],
    }  # fmt: skip


def test_bare_times_are_those_of_the_zone(used: Customer, owner: Api) -> None:
    inside = {"from": "2026-05-17T18:00:00", "to": "2026-05-17T18:00:00.000001", "tz": "Asia/Kolkata"}
    assert owner.get(_query("usage", **inside))[1]["total"]["requests"] == 2
    before = {"from": "2026-05-17T17:00", "to": "2026-05-17T18:00", "tz": "Asia/Kolkata"}
    assert owner.get(_query("usage", **before))[1]["data"] == []
    assert owner.get(_query("usage", **inside | {"tz": "UTC"}))[1]["total"]["requests"] == 0


def test_unescaped_offsets_are_read(used: Customer, owner: Api) -> None:
    assert owner.get(_query("usage", **{"from": "2026-05-17T00:00:00+05:30"}))[0] == 200


def test_nothing_used_is_an_empty_answer(cast: Cast, owner: Api) -> None:
    body = owner.get("usage")[1]
    assert (body["data"], body["total"]["amount"], body["total"]["amount_per_1m"]) == ([], "0", None)


@pytest.mark.parametrize("path", ["usage", "usage/timeseries"])
@pytest.mark.parametrize(
    "wrong, param",
    [
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-13-01"}, "to"),
        ({"from": "2026-07-01"}, "from"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"tz": "../../etc/passwd"}, "tz"),
        ({"group_by": "model; DROP TABLE", "split": "mood", "from": MAY["from"]}, None),
        ({"group_by": "hour", "step": "hour", "from": "2025-01-01"}, "from"),
    ],
)
def test_mistakes_in_a_query_are_named(
    used: Customer, owner: Api, path: str, wrong: dict[str, str], param: str
) -> None:
    status, body = owner.get(_query(path, **wrong))
    expected = param or ("group_by" if path == "usage" else "split")
    assert (status, body["error"]["param"]) == (400, expected)


def test_who_may_read_what(cast: Cast) -> None:
    allowed = {
        "usage": {"owner", "admin", "developer", "billing", "viewer"},
        "usage/timeseries": {"owner", "admin", "developer", "billing", "viewer"},
        "prices": {"owner", "admin", "developer", "billing", "viewer"},
        "balance": {"owner", "admin", "billing"},
        "statements": {"owner", "admin", "billing"},
    }
    for path, roles in allowed.items():
        found = {role for role, person in cast.people.items() if signed_in(person).get(path)[0] == 200}
        assert found == roles, path
        assert with_key(cast.acme_key).get(path)[0] == 200
        assert Api().get(path)[0] == 401


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "operator/prices"), ("POST", "operator/prices"), ("GET", "operator/tenants/{acme}/grants"),
        ("POST", "operator/tenants/{acme}/grants"), ("POST", "operator/tenants/{acme}/close"),
        ("GET", "operator/discrepancies"), ("POST", "operator/discrepancies/1/resolve"),
    ],
)  # fmt: skip
def test_only_operators_handle_money(cast: Cast, method: str, path: str) -> None:
    path = path.format(acme=cast.acme.id)
    for caller in (signed_in(cast.owner), with_key(cast.acme_key)):
        assert caller.call(method, path, {} if method == "POST" else None)[0] == 403
    assert Api().call(method, path)[0] == 401


# --- prices --------------------------------------------------------------------------------------------------------

PRICE = {"base_model": BASE, "input": "2.5", "cached_input": "0.25", "output": "10"}


def test_an_operator_sets_a_price_and_the_tenant_sees_it(cast: Cast, operator: Api, owner: Api, stranger: Api) -> None:
    status, body = operator.post("operator/prices", PRICE | {"tenant_id": cast.acme.id, "adapter_id": "adp_1"})
    assert status == 201
    assert body | {"id": "", "effective_from": ""} == {
        "id": "", **PRICE, "tenant_id": cast.acme.id, "adapter_id": "adp_1", "effective_from": "", "effective_to": None,
        "adapter_surcharge": "0", "batch_discount": 0,
    }  # fmt: skip
    assert owner.get("prices")[1]["data"] == [body]
    assert stranger.get("prices")[1]["data"] == []
    assert operator.get("operator/prices")[1]["data"] == [body]


@pytest.mark.parametrize(
    "wrong, param",
    [
        ({"input": "250000"}, "input"),
        ({"input": "-1"}, "input"),
        ({"input": "free"}, "input"),
        ({"output": "0.0000001"}, "output"),
        ({"cached_input": "3"}, "cached_input"),
        ({"base_model": ""}, "base_model"),
        ({"adapter_id": "pirate"}, "adapter_id"),
        ({"effective_from": "2020-01-01T00:00:00Z"}, "effective_from"),
        ({"effective_from": "soon"}, "effective_from"),
    ],
)
def test_mistakes_in_a_price_are_named(operator: Api, wrong: dict[str, Any], param: str) -> None:
    status, body = operator.post("operator/prices", PRICE | wrong)
    assert (status, body["error"]["param"]) == (400, param)
    assert not Price.objects.exists()


def test_a_price_of_a_missing_tenant(operator: Api) -> None:
    assert operator.post("operator/prices", PRICE | {"tenant_id": "ten_missing"})[0] == 404


# --- grants, balance, statements -----------------------------------------------------------------------------------


def test_from_grant_to_statement(used: Customer, cast: Cast, operator: Api, owner: Api, stranger: Api) -> None:
    tenant = f"operator/tenants/{cast.acme.id}"
    status, grant = operator.post(f"{tenant}/grants", {"amount": "0.00005", "reference": "welcome"})
    assert (status, grant["amount"], grant["kind"]) == (201, "0.00005", "promo")
    assert operator.post(f"{tenant}/grants", {"amount": "0.00005", "reference": "welcome"})[1] == grant
    assert operator.post(f"{tenant}/grants", {"amount": "1", "reference": "welcome"})[0] == 409
    assert operator.get(f"{tenant}/grants")[1]["data"] == [grant]
    operator.put(f"{tenant}/limits", {"monthly_budget": 5})
    balance = {"spent_this_period": "0", "budget": "5", "budget_period": "month", "held": "0", "owed": "0.000016"}
    assert owner.get("balance")[1] == balance | {"credit": "0"}
    status, statement = operator.post(f"{tenant}/close", {"until": "2026-05-18T00:00:00Z"})
    assert (status, statement["total"], statement["credit_used"], statement["due"]) == (
        200,
        "0.000066",
        "0.00005",
        "0.000016",
    )
    assert operator.post(f"{tenant}/close", {"until": "2026-05-18T00:00:00Z"})[1] == statement
    assert owner.get("statements")[1]["data"] == [statement]
    body = owner.get(f"statements/{statement['id']}")[1]
    assert {line["label"]: line["amount"] for line in body.pop("lines")} == {"pirate": "0.000042", BASE: "0.000024"}
    assert body == statement | {"earnings": [], "earned": "0"}
    assert stranger.get(f"statements/{statement['id']}")[0] == 404
    assert stranger.get("statements")[1]["data"] == []
    assert operator.post(f"{tenant}/close", {})[0] == 200
    actions = set(AuditRow.objects.filter(tenant=cast.acme).values_list("action", flat=True))
    assert {"grant.give", "limits.set", "period.close"} <= actions


@pytest.mark.parametrize(
    "path, body, param",
    [
        ("grants", {"amount": 0}, "amount"),
        ("grants", {"amount": "-3"}, "amount"),
        ("grants", {"amount": "1", "kind": "gift"}, "kind"),
        ("grants", {}, "amount"),
        ("close", {"until": "2999-01-01T00:00:00Z"}, "until"),
        ("close", {"until": "2000-01-01T00:00:00Z"}, "until"),
        ("close", {"until": "tomorrow"}, "until"),
    ],
)
def test_mistakes_of_an_operator_are_named(cast: Cast, operator: Api, path: str, body: Any, param: str) -> None:
    status, found = operator.post(f"operator/tenants/{cast.acme.id}/{path}", body)
    assert (status, found["error"]["param"]) == (400, param)


def test_money_of_a_missing_tenant(operator: Api) -> None:
    for path, body in (("grants", {"amount": 1}), ("close", {})):
        assert operator.post(f"operator/tenants/ten_missing/{path}", body)[0] == 404


def test_a_discrepancy_is_shown_until_it_is_resolved(cast: Cast, operator: Api) -> None:
    row = Discrepancy.objects.create(kind="usage_conflict", request_id="req_1", details={"device_ns": [1, 2]})
    [found] = operator.get("operator/discrepancies")[1]["data"]
    assert (found["details"], found["resolved_at"]) == ({"device_ns": [1, 2]}, None)
    path = f"operator/discrepancies/{row.id}/resolve"
    assert operator.post(path, {})[1]["error"]["param"] == "note"
    status, found = operator.post(path, {"note": "engine replaced"})
    assert (status, found["resolved_by"], found["note"]) == (200, cast.operator.id, "engine replaced")
    assert operator.post(path, {"note": "no, really"})[1] == found
    assert AuditRow.objects.filter(action="discrepancy.resolve").count() == 1
    assert operator.post("operator/discrepancies/99999/resolve", {"note": "x"})[0] == 404
