"""One streaming client for every server with an OpenAI door: it notes when each piece came, and reads them afterwards,
so that the client takes as little as it can from the processors that the server needs."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.comparison.peer import PeerFailed
from benchmarks.comparison.work import Answer, Ask, Job

_END = b"[DONE]"


@dataclass(frozen=True)
class Door:
    """Where a server answers. base: the name of its base model. more: fields of every request that are its own.

    token_id: the id of a token as it appears in the server's logprobs.
    """

    port: int
    key: str
    base: str
    token_id: Callable[[str], int]
    more: Mapping[str, Any] = field(default_factory=dict)


def ask_all(door: Door, job: Job, seconds: float, *, with_ids: bool) -> list[Answer]:
    """Raises PeerFailed."""
    try:
        return asyncio.run(asyncio.wait_for(_all(door, job, with_ids), seconds))
    except TimeoutError:
        raise PeerFailed(f"{len(job.asks)} requests took over {seconds:.0f} s") from None
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise PeerFailed(f"the connection broke: {error or type(error).__name__}") from error
    except (ValueError, KeyError) as error:
        raise PeerFailed(f"its answer is not what OpenAI's would be: {error!r}") from error


async def _all(door: Door, job: Job, with_ids: bool) -> list[Answer]:
    begun = [asyncio.Event() for _ in job.asks]

    async def one(place: int, ask: Ask) -> Answer:
        if ask.after is not None:
            await begun[ask.after].wait()
        return await _ask(door, ask, begun[place], with_ids)

    return await asyncio.gather(*(one(place, ask) for place, ask in enumerate(job.asks)))


async def _ask(door: Door, ask: Ask, begun: asyncio.Event, with_ids: bool) -> Answer:
    body = json.dumps(_body(door, ask, with_ids)).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {door.key}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    asked = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port, limit=1 << 22)
    try:
        writer.write(head.encode() + body)
        status = await reader.readuntil(b"\r\n\r\n")
        if not status.startswith(b"HTTP/1.1 200"):
            text = (await reader.read(2000)).decode(errors="replace")
            raise PeerFailed(f"{status.decode(errors='replace').splitlines()[0]}: {text[:300]}")
        pieces = await _pieces(reader, begun)
    finally:
        writer.close()
    return _answer(door, asked, pieces)


def _body(door: Door, ask: Ask, with_ids: bool) -> dict[str, Any]:
    wanted = {
        "model": ask.adapter or door.base, "prompt": ask.prompt, "max_tokens": ask.answer, "temperature": 0,
        "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    return {**wanted, **door.more, **({"logprobs": 1} if with_ids else {})}


async def _pieces(reader: asyncio.StreamReader, begun: asyncio.Event) -> list[tuple[float, bytes]]:
    """The data of each server-sent event and when it came. The answer is in chunks, as both servers send it."""
    found, left = list[tuple[float, bytes]](), b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        left += (await reader.readexactly(size + 2))[:-2]
        now = time.perf_counter()
        *events, left = left.split(b"\n\n")
        found += [(now, event.strip().removeprefix(b"data: ")) for event in events if event.strip()]
        if found:
            begun.set()
    return found


def _answer(door: Door, asked: float, pieces: list[tuple[float, bytes]]) -> Answer:
    times, ids, tokens = list[float](), list[int](), None
    for when, raw in pieces:
        if raw == _END:
            continue
        body = json.loads(raw)
        if "error" in body:
            raise PeerFailed(f"the stream ended in an error: {str(body['error'])[:300]}")
        tokens = (body.get("usage") or {}).get("completion_tokens", tokens)
        for choice in body["choices"]:
            if choice["text"] or choice.get("logprobs") or not choice["finish_reason"]:
                times.append(when)
            ids += map(door.token_id, (choice.get("logprobs") or {}).get("tokens", ()))
    if tokens is None or not times:
        raise PeerFailed("a stream ended without its usage")
    return Answer(asked, tuple(times), tokens, tuple(ids))
