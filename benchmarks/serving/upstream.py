"""What the proxies that are measured beside the door have behind them: an OpenAI server of 8 words, as lean as asyncio
lets it be. `python upstream.py PORT`."""

import asyncio
import json
import sys

from work import MODEL, STEP_SECONDS, WORDS

_HEAD = {"id": "chatcmpl-1", "created": 1, "model": MODEL}
_USAGE = {"prompt_tokens": 70, "completion_tokens": len(WORDS), "total_tokens": 70 + len(WORDS)}


def _chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    data = b"data: %b\n\n" % json.dumps({**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}).encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


_OPENING = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_CHUNKS = [_chunk({"role": "assistant", "content": word}) for word in WORDS]
_DONE = b"data: [DONE]\n\n"
_END = _chunk({}, "stop") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(_DONE), _DONE)


def _whole() -> bytes:
    message = {"role": "assistant", "content": "".join(WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    data = json.dumps({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    whole = _whole()
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            asked = json.loads(await reader.readexactly(_length(head)))
            if not asked.get("stream"):
                await asyncio.sleep(STEP_SECONDS * len(WORDS))
                writer.write(whole)
                continue
            writer.write(_OPENING)
            for chunk in _CHUNKS:
                await asyncio.sleep(STEP_SECONDS)
                writer.write(chunk)
            writer.write(_END)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _length(head: bytes) -> int:
    return int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])


async def main(port: int) -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
