"""The journal read into the books: every line has its effect once, or is kept as a discrepancy."""

import time
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from controlplane.billing.models import Discrepancy, EngineRecord
from controlplane.inference import tasks
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.models import JournalCursor
from controlplane.quotas.models import Hold
from controlplane.quotas.services import reserve
from engine.protocol import JournalLine, Usage
from tenants.ids import new_id
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.inference.conftest import BASE, Caller, holds_of, new_caller, price, usage_of

pytestmark = pytest.mark.django_db(transaction=True)
USED = Usage(40, 10, 5, 7_000)


@pytest.fixture
def engine(tmp_path):
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    yield found
    found.kill()


@pytest.fixture
def caller() -> Caller:
    return new_caller(priced=False)


def read(engine: FakeEngine, **more: int) -> int:
    with EngineCalls(engine.url) as calls:
        return ingest_journal(calls, **more)


def hold(caller: Caller, pinned, **changes: object) -> str:
    """What the door leaves when it is killed after the engine accepted."""
    request_id = new_id("req")
    context = {
        "adapter_id": "adp_1", "adapter_version_id": "adv_1", "model": "pirate@1", "base_model": BASE,
        "price_id": pinned.id, **changes,
    }  # fmt: skip
    whose = {"tenant_id": caller.tenant.id, "key_id": caller.key_id}
    run_sync(
        reserve(request_id=request_id, tokens=100, amount=Decimal("0.001"), ttl_seconds=60, context=context, **whose)
    )
    return request_id


def line(engine: FakeEngine, request_id: str, tenant: str, usage: Usage = USED) -> JournalLine:
    position = len(engine.journal) + 1
    now = time.time()
    found = JournalLine(position, request_id, tenant, "adv_1", usage, "engine_restart", now - 2, now)
    engine.journal.append(found)
    return found


def kinds() -> list[str]:
    return sorted(Discrepancy.objects.values_list("kind", flat=True))


def test_settles_what_the_door_did_not(engine: FakeEngine, caller: Caller) -> None:
    pinned = price()
    request_id = hold(caller, pinned)
    found = line(engine, request_id, caller.tenant.id)
    assert read(engine) == 1
    [event], [held] = usage_of(caller), holds_of(caller)
    assert event.amount == (30 * Decimal("1.5") + 10 * Decimal("0.5") + 5 * 6) / 1_000_000
    assert (held.state, held.settled_amount, held.settled_tokens) == ("settled", event.amount, 45)
    assert (event.request_id, event.model, event.adapter_id, event.price_id) == (
        request_id,
        "pirate@1",
        "adp_1",
        pinned.id,
    )
    assert (event.key_id, event.finish_reason, event.engine_position) == (caller.key_id, "engine_restart", 1)
    assert event.finished_at.timestamp() == pytest.approx(found.finished_at, abs=1e-5)
    assert engine.acknowledged == 1
    assert JournalCursor.objects.get().position == 1


def test_reading_again_changes_nothing(engine: FakeEngine, caller: Caller) -> None:
    request_id = hold(caller, price())
    line(engine, request_id, caller.tenant.id)
    read(engine)
    before = (usage_of(caller), holds_of(caller)[0].settled_amount)
    assert read(engine) == 0
    JournalCursor.objects.update(position=0)  # as if the acknowledgement had been all that survived
    assert read(engine) == 1
    assert (usage_of(caller), holds_of(caller)[0].settled_amount) == before
    assert EngineRecord.objects.count() == 1
    assert kinds() == []


def test_pages_are_read_to_the_end(engine: FakeEngine, caller: Caller) -> None:
    pinned = price()
    for _ in range(7):
        line(engine, hold(caller, pinned), caller.tenant.id)
    assert read(engine, page_limit=3) == 7
    assert len(usage_of(caller)) == EngineRecord.objects.count() == 7
    assert engine.acknowledged == 7


def test_a_line_that_nothing_explains_is_kept(engine: FakeEngine, caller: Caller) -> None:
    pinned = price()
    line(engine, "req_never_reserved", caller.tenant.id)
    foreign = hold(caller, pinned)
    line(engine, foreign, new_caller(priced=False).tenant.id)
    line(engine, hold(caller, pinned, price_id="prc_none"), caller.tenant.id)
    line(engine, hold(caller, pinned, surprise=1), caller.tenant.id)
    line(engine, hold(caller, pinned), caller.tenant.id, Usage(40, 41, 5, 7_000))
    good = hold(caller, pinned)
    line(engine, good, caller.tenant.id)
    assert read(engine) == 6
    assert kinds() == ["journal_not_bookable"] * 3 + ["journal_tenant_differs", "journal_without_hold"]
    assert [event.request_id for event in usage_of(caller)] == [good]
    kept = Discrepancy.objects.get(kind="journal_without_hold")
    assert (kept.request_id, kept.details["usage"]["prompt_tokens"]) == ("req_never_reserved", 40)
    assert engine.acknowledged == 6


def test_a_hold_that_expired_is_booked_late(engine: FakeEngine, caller: Caller) -> None:
    request_id = hold(caller, price())
    with tenant_scope(ALL_TENANTS):
        Hold.objects.update(state="expired", ended_at=timezone.now() - timedelta(seconds=5))
    line(engine, request_id, caller.tenant.id)
    read(engine)
    [event], [held] = usage_of(caller), holds_of(caller)
    assert (event.late, held.late, held.state) == (True, True, "expired")


def test_a_journal_that_was_lost_is_read_from_its_start_and_noted(engine: FakeEngine, caller: Caller) -> None:
    pinned = price()
    for _ in range(3):
        line(engine, hold(caller, pinned), caller.tenant.id)
    read(engine)
    engine.journal.clear()
    line(engine, hold(caller, pinned), caller.tenant.id)
    assert read(engine) == 1
    assert len(usage_of(caller)) == 4
    assert kinds() == ["journal_rewound"]


def test_an_engine_that_is_away_is_no_failure(settings, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PATIENCE_SECONDS", 0.05)
    settings.ENGINE_URL = f"ipc://{tmp_path}/nobody.sock"
    tasks.ingest_journal()
    with EngineCalls(settings.ENGINE_URL, seconds=0.05) as calls:
        with pytest.raises(EngineGone):
            calls.describe()
    assert JournalCursor.objects.count() == 0


def test_the_task_reads_the_engine_of_the_settings(settings, engine: FakeEngine, caller: Caller) -> None:
    settings.ENGINE_URL = engine.url
    line(engine, hold(caller, price()), caller.tenant.id)
    tasks.ingest_journal()
    assert len(usage_of(caller)) == 1
