"""Sends chat requests over kept-alive connections, each as soon as the last is answered, and prints what came of it as
JSON. `python -m benchmarks.serving.load ADDRESS:PORT CONNECTIONS SECONDS MODE KEY...`: keys take turns."""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from itertools import cycle

from benchmarks.serving.work import body


@dataclass
class Tally:
    """Seconds of each request that ended in time; server-sent events over all of them; answers other than 200."""

    seconds: list[float] = field(default_factory=list)
    events: int = 0
    bad: list[str] = field(default_factory=list)


async def _connection(where: tuple[str, int], raw: bytes, mode: str, until: float, tally: Tally) -> None:
    reader, writer = await asyncio.open_connection(*where)
    while (start := time.monotonic()) < until:
        writer.write(raw)
        head = await reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        if b"chunked" in lower:
            text = await reader.readuntil(b"\r\n0\r\n\r\n")
        else:
            text = await reader.readexactly(int(lower.split(b"content-length:")[1].split(b"\r\n")[0]))
        if not head.startswith(b"HTTP/1.1 200") or (mode != "whole" and b"[DONE]" not in text):
            tally.bad.append((head.split(b"\r\n")[0] + b" " + text[:300]).decode(errors="replace"))
            if len(tally.bad) > 20:
                break
            continue
        tally.seconds.append(time.monotonic() - start)
        tally.events += text.count(b"data: ")
    writer.close()


async def run(where: tuple[str, int], connections: int, seconds: float, mode: str, keys: list[str]) -> Tally:
    tally, until, content = Tally(), time.monotonic() + seconds, body(mode)
    requests = [
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n%b" % (key.encode(), len(content), content)
        for key in keys
    ]
    takers = [
        _connection(where, raw, mode, until, tally) for raw, _ in zip(cycle(requests), range(connections), strict=False)
    ]
    await asyncio.gather(*takers)
    return tally


def main(address: str, connections: str, seconds: str, mode: str, *keys: str) -> None:
    host, _, port = address.partition(":")
    began = time.monotonic()
    tally = asyncio.run(run((host, int(port)), int(connections), float(seconds), mode, list(keys)))
    ordered = sorted(tally.seconds)
    print(
        json.dumps(
            {
                "requests": len(ordered),
                "seconds": time.monotonic() - began,
                "p50_ms": 1000 * ordered[len(ordered) // 2] if ordered else None,
                "p99_ms": 1000 * ordered[len(ordered) * 99 // 100] if ordered else None,
                "events": tally.events / max(1, len(ordered)),
                "bad": len(tally.bad),
                "first_bad": tally.bad[:1],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
