"""Batches over the management API: all of the tenant's keys', nobody else's; cancelled by who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.batches.models import Batch, BatchLine
from tenants.key_services import issue_key
from tenants.models import ApiKey, AuditRow, Tenant
from tests.controlplane.conftest import Api, Cast, signed_in, with_key


@pytest.fixture(autouse=True)
def stack() -> None:
    """No door is needed here."""


def batch_of(tenant: Tenant, **more: Any) -> Batch:
    key = ApiKey.objects.filter(tenant=tenant).first()
    values = {
        "endpoint": "/v1/completions", "completion_window": "24h", "input_file_id": "file_x",
        "output_kept_seconds": 3600, "expires_at": timezone.now() + timedelta(hours=24), "total": 3,
    }  # fmt: skip
    return Batch.objects.create(tenant=tenant, key=key, **values | more)


def test_a_tenant_sees_its_own(cast: Cast, owner: Api) -> None:
    theirs = batch_of(cast.globex)
    mine = [batch_of(cast.acme, status=status) for status in ("validating", "in_progress")]
    _, page = owner.get("batches?limit=1")
    assert ([row["id"] for row in page["data"]], page["next"] is not None) == ([mine[1].id], True)
    _, rest = owner.get(f"batches?limit=1&cursor={page['next']}")
    assert ([row["id"] for row in rest["data"]], rest["next"]) == ([mine[0].id], None)
    assert [row["id"] for row in owner.get("batches?status=in_progress")[1]["data"]] == [mine[1].id]
    status, body = owner.get(f"batches/{mine[0].id}")
    assert (status, body["key_name"], body["amount"], body["total"]) == (200, "acme program", "0", 3)
    assert owner.get(f"batches/{theirs.id}")[0] == 404
    assert owner.get("batches?status=done")[1]["error"]["param"] == "status"


def test_it_is_cancelled_once_and_audited(cast: Cast) -> None:
    batch = batch_of(cast.acme)
    api = signed_in(cast.people["developer"])
    status, body = api.post(f"batches/{batch.id}/cancel")
    assert (status, body["status"]) == (200, "cancelling")
    assert api.post(f"batches/{batch.id}/cancel")[0] == 200
    [row] = AuditRow.objects.filter(action="batch.cancel")
    assert (row.actor, row.target, row.tenant_id) == (cast.people["developer"].id, batch.id, cast.acme.id)
    ended = batch_of(cast.acme, status="completed", ended_at=timezone.now())
    status, body = api.post(f"batches/{ended.id}/cancel")
    assert (status, body["error"]["code"]) == (409, "batch_ended")


def test_looking_is_not_cancelling(cast: Cast) -> None:
    batch = batch_of(cast.acme)
    _, reader = issue_key(tenant=cast.acme, name="reader", scopes=("usage:read",), actor=cast.owner)
    for api in (signed_in(cast.people["viewer"]), signed_in(cast.people["billing"]), with_key(reader)):
        assert api.get(f"batches/{batch.id}")[0] == 200
        assert api.post(f"batches/{batch.id}/cancel")[0] == 403
    batch.refresh_from_db()
    assert batch.status == "validating"


FAILURE = {"status": 400, "code": "invalid_value", "message": "temperature is 9: at most 2", "param": "temperature"}


def line_of(batch: Batch, number: int, state: str = "completed") -> BatchLine:
    ended = None if state == "running" else timezone.now()
    return BatchLine.objects.create(
        tenant=batch.tenant, batch=batch, number=number, custom_id=f"line-{number}", state=state, ended_at=ended,
        failure=FAILURE if state == "failed" else None,
    )  # fmt: skip


def test_lines_are_listed_in_the_order_of_the_file(cast: Cast, owner: Api) -> None:
    batch, other = batch_of(cast.acme, total=6), batch_of(cast.acme)
    for number, state in enumerate(("failed", "completed", "running", "failed", "failed"), start=1):
        line_of(batch, number, state)
    line_of(other, 1, "failed")
    found: list[int] = []
    cursor = ""
    while cursor is not None:
        _, page = owner.get(f"batches/{batch.id}/lines?limit=2{cursor and f'&cursor={cursor}'}")
        found += [row["number"] for row in page["data"]]
        cursor = page["next"]
    assert found == [1, 2, 3, 4, 5]
    _, page = owner.get(f"batches/{batch.id}/lines?state=failed")
    assert [(row["number"], row["custom_id"], row["failure"]) for row in page["data"]] == [
        (number, f"line-{number}", FAILURE) for number in (1, 4, 5)
    ]
    _, page = owner.get(f"batches/{batch.id}/lines?state=running")
    assert [(row["attempts"], row["ended_at"], row["failure"]) for row in page["data"]] == [(1, None, None)]


def test_lines_of_another_tenants_batch_are_those_of_none(cast: Cast, owner: Api) -> None:
    theirs = batch_of(cast.globex)
    line_of(theirs, 1, "failed")
    missing = owner.get("batches/batch_none/lines")
    status, body = owner.get(f"batches/{theirs.id}/lines")
    assert (status, missing[0]) == (404, 404)
    assert body["error"]["code"] == missing[1]["error"]["code"] == "batch_not_found"
    assert "line-1" not in str(body)


@pytest.mark.parametrize(("query", "param"), [("state=done", "state"), ("cursor=x", "cursor"), ("limit=0", "limit")])
def test_what_is_asked_of_lines_wrongly_is_named(cast: Cast, owner: Api, query: str, param: str) -> None:
    status, body = owner.get(f"batches/{batch_of(cast.acme).id}/lines?{query}")
    assert (status, body["error"]["param"]) == (400, param)
