"""`kill -9` of any one child while requests run: no committed row and no token is lost, and it comes back by itself."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import openai
import psycopg
import pytest
from openai import OpenAI

from controlplane.embedded.demo import books
from controlplane.embedded.demo.kills import CHILDREN
from controlplane.embedded.demo.load import Door
from tenants.roles import OPERATOR

if TYPE_CHECKING:
    from tests.e2e.conftest import World

pytestmark = pytest.mark.stack
PATIENCE = 120.0


def kill(world: "World", child: str) -> int:
    pid = int(world.stack.facts()["pids"][child])
    os.kill(pid, signal.SIGKILL)
    return pid


def wait_back(world: "World", child: str, killed: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while world.stack.facts()["pids"].get(child, killed) == killed:
        assert time.monotonic() < deadline, f"{child} was not restarted"
        time.sleep(0.05)


def usage_rows(world: "World") -> set[tuple[object, ...]]:
    with psycopg.connect(world.stack.facts()["DATABASE_URL"], options=f"-c role={OPERATOR}") as conn:
        return set(conn.execute("SELECT request_id, prompt_tokens, completion_tokens, amount FROM billing_usageevent"))


@contextmanager
def killed_under_load(world: "World", child: str) -> Iterator[list[int]]:
    """A thread kills the child once requests run. The list gets the pid."""
    killed: list[int] = []

    def wait_and_kill() -> None:
        deadline = time.monotonic() + PATIENCE
        while not books.open_holds(world.stack) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        killed.append(kill(world, child))

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    try:
        yield killed
    finally:
        thread.join()


@pytest.mark.parametrize("child", CHILDREN)
def test_nothing_is_lost(world: "World", child: str) -> None:
    before = usage_rows(world)
    asks = world.asks()
    with killed_under_load(world, child) as killed:
        answers = asyncio.run(Door(world.stack.door_url, world.keys, retry=True).ask_all(asks))
    wait_back(world, child, killed[0])
    assert [answer.ask for answer in answers] == asks
    assert all(answer.completion_tokens for answer in answers)
    books.wait_until_settled(world.stack)
    after = usage_rows(world)
    assert before <= after
    assert len(after - before) >= len(asks)
    assert books.check_books(world.stack).rstrip().endswith("books: balanced")
    assert books.check_journal(world.stack) == len(after)


def read_and_kill(world: "World", stream: Any, texts: list[str]) -> None:
    """Collect the stream's pieces; the fifth kills the engine."""
    for chunk in stream:
        texts += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        if len(texts) == 5:
            kill(world, "engine")


def test_an_engine_killed_mid_stream_is_an_error_event_and_is_billed_for_what_was_sent(world: "World") -> None:
    client = OpenAI(base_url=f"{world.stack.door_url}/v1", api_key=world.keys["acme"], max_retries=0, timeout=120)
    before = usage_rows(world)
    stream = client.chat.completions.create(
        model=world.base_model, messages=[{"role": "user", "content": "Tell me a long story about the sea."}],
        max_tokens=400, temperature=0, stream=True,
    )  # fmt: skip
    texts: list[str] = []
    killed = int(world.stack.facts()["pids"]["engine"])
    with pytest.raises(openai.APIError):
        read_and_kill(world, stream, texts)
    wait_back(world, "engine", killed)
    books.wait_until_settled(world.stack)
    [row] = usage_rows(world) - before
    assert len(texts) <= int(str(row[2])) < 400
    answer = Door(world.stack.door_url, world.keys, retry=True)
    [again] = asyncio.run(answer.ask_all(world.asks(max_tokens=4)[:1]))
    assert again.completion_tokens == 4
