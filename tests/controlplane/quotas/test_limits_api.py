"""Who may set which limits over HTTP, and what is said to those who may not or who mistype."""

from typing import Any

import pytest

from tenants.models import ApiKey, AuditRow
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.conftest import Api, Cast, signed_in, with_key

NONE = {
    "requests_per_minute": None, "tokens_per_minute": None, "tokens_per_day": None, "tokens_per_month": None,
    "concurrency": None, "monthly_budget": None, "total_budget": None, "soft_budget": None, "spent": "0", "held": "0",
    "tenant_weight": "1",
    "postpaid_limit": None, "owed": "0",
}  # fmt: skip


@pytest.fixture
def limits(cast: Cast) -> str:
    return f"operator/tenants/{cast.acme.id}/limits"


def _key(cast: Cast, tenant: str = "acme") -> str:
    with tenant_scope(ALL_TENANTS):
        return ApiKey.objects.get(tenant__slug=tenant).id


def test_a_tenant_without_limits_says_so(operator: Api, limits: str) -> None:
    assert operator.get(limits) == (200, NONE)


def test_what_is_left_out_stays_and_null_takes_away(operator: Api, limits: str, cast: Cast) -> None:
    status, found = operator.put(limits, {"requests_per_minute": 60, "monthly_budget": "12.50"})
    assert (status, found) == (200, NONE | {"requests_per_minute": 60, "monthly_budget": "12.5"})
    assert operator.put(limits, {"concurrency": 4})[1] == found | {"concurrency": 4}
    assert operator.put(limits, {"requests_per_minute": None})[1]["requests_per_minute"] is None
    body = operator.put(limits, {"monthly_budget": None, "total_budget": 100})[1]
    assert (body["monthly_budget"], body["total_budget"]) == (None, "100")
    assert operator.get(limits)[1] == body
    row = AuditRow.objects.filter(action="limits.set").order_by("id").first()
    assert (row.actor, row.tenant, row.target) == (cast.operator.id, cast.acme, cast.acme.id)
    assert row.details == {"requests_per_minute": 60, "period": "month", "budget": "12.500000"}


@pytest.mark.parametrize(
    "body, param",
    [
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"requests_per_minute": -1}, "requests_per_minute"),
        ({"tokens_per_day": 0}, "tokens_per_day"),
        ({"tokens_per_minute": 1.5}, "tokens_per_minute"),
        ({"tokens_per_minute": 10**13}, "tokens_per_minute"),
        ({"concurrency": "many"}, "concurrency"),
        ({"monthly_budget": "-0.01"}, "monthly_budget"),
        ({"monthly_budget": "NaN"}, "monthly_budget"),
        ({"monthly_budget": "0.0000001"}, "monthly_budget"),
        ({"total_budget": 10**10}, "total_budget"),
        ({"monthly_budget": 1, "total_budget": 1}, "total_budget"),
        ({"request_per_minute": 5}, "request_per_minute"),
        ({"tenant_weight": 0}, "tenant_weight"),
        ({"tenant_weight": "100.01"}, "tenant_weight"),
        ({"tenant_weight": "NaN"}, "tenant_weight"),
        ({"tenant_weight": "0.005"}, "tenant_weight"),
        ({"tenant_weight": None}, "tenant_weight"),
    ],
)
def test_mistakes_are_named(operator: Api, limits: str, body: dict[str, Any], param: str) -> None:
    status, found = operator.put(limits, body)
    assert (status, found["error"]["param"]) == (400, param)
    assert operator.get(limits)[1] == NONE


def test_only_operators_set_a_tenants_limits(cast: Cast, limits: str) -> None:
    for role, person in cast.people.items():
        for method in ("get", "put"):
            assert getattr(signed_in(person), method)(limits)[0] == 403, role
    assert with_key(cast.acme_key).put(limits, {"monthly_budget": None})[0] == 403
    assert Api().get(limits)[0] == 401
    assert signed_in(cast.operator).get("operator/tenants/ten_missing/limits")[0] == 404


def test_a_tenants_people_limit_its_keys(cast: Cast, owner: Api) -> None:
    path = f"keys/{_key(cast)}/limits"
    assert owner.put(path, {"requests_per_minute": 5})[1]["requests_per_minute"] == 5
    expected = {"owner": 200, "admin": 200, "developer": 200, "billing": 403, "viewer": 403}
    assert {
        role: signed_in(person).put(path, {"concurrency": 2})[0] for role, person in cast.people.items()
    } == expected
    assert {role: signed_in(person).get(path)[0] for role, person in cast.people.items()} == expected


def test_a_foreign_key_is_missing(cast: Cast, owner: Api) -> None:
    answers = [owner.put(f"keys/{key}/limits", {"concurrency": 1}) for key in (_key(cast, "globex"), "key_missing")]
    assert [status for status, _ in answers] == [404, 404]
    assert len({body["error"]["code"] for _, body in answers}) == 1
    assert owner.get(f"keys/{_key(cast, 'globex')}/limits")[0] == 404


def test_a_weight_is_a_tenants_and_the_audit_log_has_it(operator: Api, owner: Api, limits: str, cast: Cast) -> None:
    assert operator.put(limits, {"tenant_weight": "2.50"}) == (200, NONE | {"tenant_weight": "2.5"})
    assert operator.put(limits, {"concurrency": 3})[1]["tenant_weight"] == "2.5"
    row = AuditRow.objects.filter(action="limits.set").order_by("id").first()
    assert (row.actor, row.details) == (cast.operator.id, {"tenant_weight": "2.50"})
    status, found = owner.put(f"keys/{_key(cast)}/limits", {"tenant_weight": "100"})
    assert (status, found["error"]["param"]) == (400, "tenant_weight")
    assert "tenant_weight" not in owner.get(f"keys/{_key(cast)}/limits")[1]
