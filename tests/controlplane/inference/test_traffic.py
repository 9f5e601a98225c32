"""How an adapter's versions do under live traffic, against plain arithmetic on the same usage."""

import statistics
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from controlplane.billing.models import Price, UsageEvent
from tenants.ids import new_id
from tenants.models import ApiKey, Tenant
from tests.controlplane.conftest import Api, Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def pirate(cast: Cast) -> Adapter:
    """Version 1 has nine tenths, 2 the rest; 3 is called by its number only, 4 by nobody."""
    adapter = Adapter.objects.create(tenant=cast.acme, name="pirate", base_model="base")
    for number in (1, 2, 3, 4):
        version = AdapterVersion.objects.create(
            tenant=cast.acme, adapter=adapter, number=number, size_bytes=1, state=State.READY, digest=f"{number:064x}",
            rank=8, uri="file:///x", ready_at=timezone.now(),
        )  # fmt: skip
        if number < 3:
            AliasSplit.objects.create(adapter=adapter, version=version, weight={1: 90, 2: 10}[number])
    Price.objects.create(base_model="base", input=1, cached_input=1, output=1, created_by="x")
    return adapter


def used(
    tenant: Tenant, adapter: Adapter, number: int, seconds: float, *, ago: float = 5, reason: str = "stop",
    tokens: int = 10, request_id: str = "",
) -> None:  # fmt: skip
    """ago: minutes since its end."""
    end = timezone.now() - timedelta(minutes=ago)
    UsageEvent.objects.create(
        request_id=request_id or new_id("req"), tenant=tenant, key=ApiKey.objects.filter(tenant=tenant).first(),
        adapter_id=adapter.id, adapter_version_id=adapter.versions.get(number=number).id, model=f"pirate@{number}",
        base_model="base", price=Price.objects.get(), prompt_tokens=5, cached_tokens=0, completion_tokens=tokens,
        device_ns=1, amount=Decimal(0), finish_reason=reason, started_at=end - timedelta(seconds=seconds),
        finished_at=end,
    )  # fmt: skip


def sides(api: Api, adapter: Adapter, query: str = "") -> dict[int, Any]:
    status, body = api.get(f"adapters/{adapter.id}/traffic{query}")
    assert status == 200, body
    return {side.pop("version"): side for side in body["sides"]}


def test_each_side_by_plain_arithmetic(owner: Api, cast: Cast, pirate: Adapter) -> None:
    seconds = [0.25, 0.5, 1.0, 4.0]
    for each in seconds:
        used(cast.acme, pirate, 1, each)
    used(cast.acme, pirate, 1, 99, reason="cancelled")
    used(cast.acme, pirate, 1, 99, reason="error:non_finite_logits")
    used(cast.acme, pirate, 1, 99, reason="engine_restart", tokens=0)
    used(cast.acme, pirate, 2, 2.0, tokens=4, reason="length")
    used(cast.acme, pirate, 3, 1.0, tokens=0)
    found = sides(owner, pirate)
    assert set(found) == {1, 2, 3}
    assert [found[number]["weight"] for number in found] == [90, 10, None]
    one = found[1]
    assert (one["requests"], one["cancelled"], one["errors"]) == (7, 1, 2)
    assert one["error_rate"] == pytest.approx(2 / 6)
    assert one["completion_tokens"] == 60
    quantiles = statistics.quantiles([1000 * each for each in seconds], n=20, method="inclusive")
    assert one["latency_ms"] == {"p50": 750.0, "p95": pytest.approx(quantiles[-1])}
    assert one["ms_per_token"] == {"p50": 75.0, "p95": pytest.approx(quantiles[-1] / 10)}
    assert found[2]["latency_ms"] == {"p50": 2000.0, "p95": 2000.0}
    assert found[2]["ms_per_token"] == {"p50": 500.0, "p95": 500.0}
    assert (found[3]["ms_per_token"], found[3]["error_rate"]) == (None, 0.0)


def test_only_the_window_and_no_evaluation_counts(owner: Api, cast: Cast, pirate: Adapter) -> None:
    used(cast.acme, pirate, 1, 1.0, ago=50)
    used(cast.acme, pirate, 1, 1.0, ago=70)
    used(cast.acme, pirate, 1, 1.0, request_id=new_id("evr"))
    used(cast.acme, pirate, 1, 1.0, request_id="evrx-not-one")
    assert [sides(owner, pirate, query)[1]["requests"] for query in ("", "?minutes=120", "?minutes=1")] == [2, 3, 0]
    idle = sides(owner, pirate, "?minutes=1")[1]
    assert (idle["error_rate"], idle["latency_ms"]) == (None, None)


def test_what_a_grantee_uses_is_not_shown_to_the_owner(owner: Api, cast: Cast, pirate: Adapter) -> None:
    used(cast.globex, pirate, 1, 1.0)
    assert sides(owner, pirate)[1]["requests"] == 0


def test_a_strangers_look_finds_nothing(stranger: Api, pirate: Adapter) -> None:
    assert stranger.get(f"adapters/{pirate.id}/traffic")[0] == 404


@pytest.mark.parametrize("minutes", ["0", "-1", "1441", "x", "", "1.5", "9" * 99, "%C2%B2"])
def test_a_window_that_is_none_is_refused(owner: Api, pirate: Adapter, minutes: str) -> None:
    status, body = owner.get(f"adapters/{pirate.id}/traffic?minutes={minutes}")
    assert (status, body["error"]["param"]) == (400, "minutes")
