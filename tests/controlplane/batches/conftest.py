"""The door of `tests/controlplane/inference`, with an object store of the test's own, and a worker run by hand."""

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types import Batch as BatchObject

from controlplane.batches.models import Batch, BatchLine
from controlplane.batches.work import work
from controlplane.billing.prices import Rates, set_price
from controlplane.inference.books import check_records
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.quotas.models import Level, Quota
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import BASE, Caller, Served, caller, client, http, served, stack

__all__ = ["caller", "client", "http", "served", "stack"]
CHAT = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def objects(settings: Any, tmp_path: Path) -> Path:
    settings.OBJECTS_DIR = tmp_path / "objects"
    return settings.OBJECTS_DIR


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker looks, and tries again, more often than it ships."""
    for module in ("one_batch", "work"):
        monkeypatch.setattr(f"controlplane.batches.{module}.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("controlplane.batches.one_line.LONGEST_PAUSE_SECONDS", 0.1)


@pytest.fixture
def everybody() -> Iterator[None]:
    with tenant_scope(ALL_TENANTS):
        yield


def chat(number: int, **more: Any) -> dict[str, Any]:
    body = {"model": BASE, "messages": [{"role": "user", "content": f"hello {number}"}], "max_tokens": 8}
    return {"custom_id": f"line-{number}", "method": "POST", "url": CHAT, "body": body | more}


def jsonl(lines: list[Any]) -> bytes:
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)


def upload(client: openai.OpenAI, lines: list[Any]) -> str:
    return client.files.create(file=("in.jsonl", jsonl(lines)), purpose="batch").id


def create(client: openai.OpenAI, lines: list[Any], endpoint: str = CHAT, **more: Any) -> BatchObject:
    return client.batches.create(
        input_file_id=upload(client, lines), endpoint=endpoint, completion_window="24h", **more
    )


def work_off() -> None:
    """What hangs is told by its traceback."""
    assert asyncio.run(asyncio.wait_for(work(), 120))


def records(client: openai.OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()] if file_id else []


def row_of(batch_id: str) -> Batch:
    with tenant_scope(ALL_TENANTS):
        return Batch.objects.get(id=batch_id)


def lines_of(batch_id: str) -> list[BatchLine]:
    with tenant_scope(ALL_TENANTS):
        return list(BatchLine.objects.filter(batch_id=batch_id).order_by("number"))


def set_discount(caller: Caller, percent: int, **rates: str) -> None:
    dollars = {"input": "1.5", "cached_input": "0.5", "output": "6"} | rates
    found = Rates(**{name: Decimal(value) for name, value in dollars.items()}, batch_discount=percent)
    set_price(base_model=BASE, rates=found, actor="test", tenant=caller.tenant)


def quota_of(caller: Caller) -> Quota:
    with tenant_scope(ALL_TENANTS):
        return Quota.objects.get(tenant=caller.tenant, level=Level.TENANT)


def assert_balanced(stack: Served) -> None:
    """With everything in the journal read."""
    with EngineCalls(stack.engine.url) as engine:
        ingest_journal(engine)
    broken = [finding for finding in check_records(0).findings if finding.broken]
    assert broken == []


@pytest.fixture
def new_journal(stack: Served) -> None:
    """The books of a test are compared with what the engine did in it."""
    stack.engine.journal.clear()
