"""`kill -9` of the worker, a real process: what had finished is never run or billed again, the rest is."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from django.conf import settings

from controlplane.batches import finishing, one_line
from controlplane.batches.lost import give_back_lost
from controlplane.batches.models import BatchLine, LostAttempt
from controlplane.batches.threads import in_thread
from controlplane.batches.work import work
from controlplane.billing.models import Grant
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.quotas.services import expire_holds
from engine.protocol import Generate
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.batches.conftest import (
    assert_balanced,
    chat,
    create,
    lines_of,
    quota_of,
    records,
    row_of,
    work_off,
)
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import Caller, Served, usage_of, wait_for
from tests.controlplane.money import ROOT, database_url

pytestmark = pytest.mark.usefixtures("new_journal")
WORKER = """
import asyncio, django
django.setup()
from controlplane.batches.work import work
asyncio.run(work())
"""


@contextmanager
def worker(stack: Served) -> Iterator[subprocess.Popen[bytes]]:
    env = {
        "PATH": os.environ["PATH"], "DATABASE_URL": database_url(), "VALKEY_URL": settings.VALKEY_URL,
        "DJANGO_SETTINGS_MODULE": "controlplane.settings", "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        "VENEER_ENGINE_URL": stack.engine.url, "VENEER_MODEL": str(settings.MODEL_DIR),
        "VENEER_HOME": str(Path(settings.OBJECTS_DIR).parent), "VENEER_HOLD_TTL_SECONDS": "3",
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", WORKER], env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def ended(batch_id: str) -> list[BatchLine]:
    return [line for line in lines_of(batch_id) if line.state != "running"]


def test_a_killed_worker_loses_and_doubles_nothing(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    stack.engine.script = Script(delay=0.05)
    batch = create(client, [chat(i) for i in range(1, 25)])
    with worker(stack) as process:
        wait_for(lambda: len(ended(batch.id)) >= 6 and stack.engine.running, "some lines to end", 60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    before = {line.number: (line.attempt, line.answer) for line in ended(batch.id)}
    under_way = [line.number for line in lines_of(batch.id) if line.state == "running"]
    assert under_way
    assert 0 < len(before) < 24
    stack.engine.script = Script()
    work_off()
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.request_counts.completed) == ("completed", 24)
    assert [each["custom_id"] for each in records(client, batch.output_file_id)] == [f"line-{i}" for i in range(1, 25)]
    asked = Counter(request.request_id.split("-")[1] for request in stack.engine.of(Generate))
    assert {int(number) for number, times in asked.items() if times > 1} <= set(under_way)
    assert all(asked[str(number)] == 1 for number in before)
    assert {line.number: line.attempt for line in lines_of(batch.id) if line.number in before} == {
        number: attempt for number, (attempt, _) in before.items()
    }
    assert_paid_once(batch, caller, stack)


def assert_paid_once(batch: Any, caller: Caller, stack: Served) -> None:
    """What the lost attempts cost has come back as credit, once, however often one looks."""
    wait_for(lambda: not stack.engine.running, "the engine to give up what nobody waits for", 30)
    with EngineCalls(stack.engine.url) as engine:
        ingest_journal(engine)
    with tenant_scope(ALL_TENANTS):
        wait_for(lambda: expire_holds() or quota_of(caller).held == 0, "what the killed worker held to expire", 30)
        give_back_lost()
        give_back_lost()
        final = {f"{batch.id}-{line.number}-{line.attempt}" for line in lines_of(batch.id)}
        events = usage_of(caller)
        kept = sum(event.amount for event in events if event.request_id in final)
        lost = sum(event.amount for event in events if event.request_id not in final)
        assert row_of(batch.id).amount == kept
        assert sum(grant.amount for grant in Grant.objects.filter(tenant=caller.tenant)) == lost
        assert len([event for event in events if event.request_id in final]) == batch.request_counts.completed
        charged = {event.request_id for event in events}
        assert not LostAttempt.objects.filter(request_id__in=charged).exists()
    assert_balanced(stack)


def test_an_attempt_that_was_billed_and_not_kept_is_given_back(
    client: openai.OpenAI, caller: Caller, stack: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work breaks off between the settlement and the answer's being kept."""
    succeed, broken = one_line._succeed, []

    async def break_once(*given: Any) -> None:
        if not broken:
            broken.append(await in_thread(ALL_TENANTS, usage_of, caller))
            raise RuntimeError("broken off")
        await succeed(*given)

    monkeypatch.setattr(one_line, "_succeed", break_once)
    batch = create(client, [chat(1)])
    work_off()
    [[event]] = broken
    batch = client.batches.retrieve(batch.id)
    assert (batch.request_counts.completed, len(usage_of(caller))) == (1, 2)
    assert_paid_once(batch, caller, stack)
    with tenant_scope(ALL_TENANTS):
        [grant] = Grant.objects.filter(tenant=caller.tenant)
    assert (grant.amount, grant.reference) == (event.amount, f"lost:{event.request_id}")


def test_a_worker_that_dies_while_it_finishes_is_taken_over(
    client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, seen = finishing._end, []

    def break_once(*given: Any) -> None:
        if not seen:
            seen.append((row_of(batch.id), client.batches.retrieve(batch.id).output_file_id))
            raise RuntimeError("broken off")
        end(*given)

    monkeypatch.setattr(finishing, "_end", break_once)
    batch = create(client, [chat(1), chat(2, temperature=9)])
    work_off()
    [(row, shown)] = seen
    assert (row.status, shown) == ("finalizing", None)
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.output_file_id) == ("completed", row.output_file_id)
    assert len(records(client, batch.output_file_id)) == len(records(client, batch.error_file_id)) == 1


def test_an_engine_that_dies_costs_nothing_twice(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    stack.engine.scripts.append(Script(die_after=2))
    batch = create(client, [chat(1)])

    def bring_back() -> None:
        wait_for(lambda: not stack.engine._thread.is_alive(), "the engine to die", 30)
        stack.engine.start()

    helper = threading.Thread(target=bring_back)
    helper.start()
    work_off()
    helper.join()
    batch = client.batches.retrieve(batch.id)
    assert (batch.request_counts.completed, lines_of(batch.id)[0].attempt) == (1, 2)
    assert_paid_once(batch, caller, stack)


def test_only_one_worker_works(client: openai.OpenAI, stack: Served) -> None:
    stack.engine.script = Script(delay=0.1)
    batch = create(client, [chat(i) for i in range(1, 9)])
    with worker(stack):
        wait_for(lambda: stack.engine.running, "the first worker to begin", 60)
        assert not asyncio.run(work())
        wait_for(lambda: row_of(batch.id).status == "completed", "the first worker to end", 60)
    assert len(stack.engine.of(Generate)) == 8
