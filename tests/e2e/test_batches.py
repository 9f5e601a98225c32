"""A batch through the stack's own worker, which is killed while it works."""

import json
import time
from decimal import Decimal
from typing import TYPE_CHECKING

import psycopg
import pytest
from openai import OpenAI
from openai.types import Batch

from controlplane.embedded.demo import books
from tenants.roles import OPERATOR
from tests.e2e.test_kills import PATIENCE, kill, wait_back

if TYPE_CHECKING:
    from tests.e2e.conftest import World

pytestmark = pytest.mark.stack
URL = "/v1/chat/completions"


def line(number: int, model: str) -> str:
    body = {
        "model": model, "messages": [{"role": "user", "content": f"Count to {number}."}], "max_tokens": 24,
        "temperature": 0,
    }  # fmt: skip
    return json.dumps({"custom_id": f"line-{number}", "method": "POST", "url": URL, "body": body})


def wait_for(door: OpenAI, batch: Batch, done: int) -> Batch:
    """Until so many lines are done, or it has ended."""
    deadline = time.monotonic() + PATIENCE
    while batch.request_counts.completed < done and batch.completed_at is None:
        assert time.monotonic() < deadline, batch
        time.sleep(0.1)
        batch = door.batches.retrieve(batch.id)
    return batch


def charged(world: "World", batch: Batch) -> tuple[Decimal, int]:
    """Dollars and charged usage events of all attempts at its lines, less what came back as credit. An attempt that was
    lost before its first token has an event of nothing, for which nothing comes back."""
    events = """
        SELECT coalesce(sum(amount), 0), count(*) FILTER (WHERE amount > 0) FROM billing_usageevent
        WHERE starts_with(request_id, %s)"""
    back = "SELECT coalesce(sum(amount), 0), count(*) FROM billing_grant WHERE starts_with(reference, %s)"
    with psycopg.connect(world.stack.facts()["DATABASE_URL"], options=f"-c role={OPERATOR}") as conn:
        [spent] = conn.execute(events, [f"{batch.id}-"])
        [given] = conn.execute(back, [f"lost:{batch.id}-"])
    return spent[0] - given[0], spent[1] - given[1]


@pytest.mark.timeout(600)
def test_a_batch_survives_its_worker(world: "World") -> None:
    door = OpenAI(base_url=f"{world.stack.door_url}/v1", api_key=world.keys["acme"])
    lines = [line(i, world.base_model if i % 2 else "pirate") for i in range(1, 17)]
    file = door.files.create(file=("lines.jsonl", "\n".join(lines).encode()), purpose="batch")
    batch = door.batches.create(input_file_id=file.id, endpoint=URL, completion_window="24h")
    batch = wait_for(door, batch, 3)
    wait_back(world, "batches", kill(world, "batches"))
    batch = wait_for(door, batch, 16)
    deadline = time.monotonic() + PATIENCE
    while batch.status != "completed":
        assert time.monotonic() < deadline, batch
        time.sleep(0.1)
        batch = door.batches.retrieve(batch.id)
    assert (batch.request_counts.completed, batch.request_counts.failed) == (16, 0)
    answers = [json.loads(text) for text in door.files.content(batch.output_file_id or "").iter_lines()]
    assert [answer["custom_id"] for answer in answers] == [f"line-{i}" for i in range(1, 17)]
    books.wait_until_settled(world.stack)
    cost = sum(Decimal(answer["response"]["body"]["usage"]["cost"]) for answer in answers)
    assert Decimal(batch.model_dump()["cost"]) == cost
    deadline = time.monotonic() + 2 * PATIENCE
    while charged(world, batch) != (cost, 16):  # what the lost attempts cost comes back within a minute or so
        assert time.monotonic() < deadline, charged(world, batch)
        time.sleep(0.5)
    assert books.check_books(world.stack).rstrip().endswith("books: balanced")
