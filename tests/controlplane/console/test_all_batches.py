"""Batches of every tenant, as operators see them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.batches.models import Batch
from tenants.models import ApiKey
from tests.controlplane.conftest import Api, Cast


def test_of_every_tenant_by_status_and_by_name(operator: Api, cast: Cast) -> None:
    now = timezone.now()
    for tenant, status in ((cast.acme, "in_progress"), (cast.globex, "completed")):
        Batch.objects.create(
            tenant=tenant, key=ApiKey.objects.get(tenant=tenant), endpoint="/v1/chat/completions", status=status,
            completion_window="24h", input_file_id="file_1", output_kept_seconds=1, total=9, completed=4, failed=1,
            expires_at=now + timedelta(days=1), ended_at=now if status == "completed" else None,
        )  # fmt: skip

    def found(query: str = "") -> list[tuple[str, str, int]]:
        status, body = operator.get(f"operator/batches{query}")
        assert status == 200
        return sorted((row["tenant"], row["status"], row["total"] - row["completed"]) for row in body["data"])

    assert found() == [("acme", "in_progress", 5), ("globex", "completed", 5)]
    assert found("?status=completed") == [("globex", "completed", 5)]
    assert found("?search=ACM") == [("acme", "in_progress", 5)]
    assert found("?search=none") == []


@pytest.mark.parametrize(("query", "field"), [("status=x", "status"), ("limit=x", "limit")])
def test_a_wrong_filter_names_the_field(operator: Api, query: str, field: str) -> None:
    status, body = operator.get(f"operator/batches?{query}")
    assert (status, body["error"]["param"]) == (400, field)
