"""Batches over the management API: all of the tenant's keys', nobody else's; cancelled by who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.batches.models import Batch
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
