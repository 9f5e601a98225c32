"""Bodies that are too large end where they arrive, whatever they say of themselves."""

import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from controlplane.console.body_limit import BodyLimit, limit_for

LIMIT = 100


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Reads all of the body first, as Django does, and answers its length."""
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message["body"]), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(length).encode()})


async def answer(chunks: list[bytes], headers: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    scope = {"type": "http", "method": "POST", "path": "/api/v1/keys", "headers": headers}
    client = ApplicationCommunicator(BodyLimit(app), scope)
    for index, chunk in enumerate(chunks):
        await client.send_input({"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1})
    start = await client.receive_output(timeout=10)
    body = await client.receive_output(timeout=10)
    return start["status"], body["body"]


@pytest.fixture(autouse=True)
def _limits(settings: Any) -> None:
    settings.MAX_BODY_BYTES = LIMIT
    settings.MAX_PART_BYTES = 10 * LIMIT


async def test_up_to_the_limit_it_goes_through() -> None:
    assert await answer([b"x" * 60, b"x" * 40], []) == (200, b"100")


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([b"x" * 60, b"x" * 41], []),
        ([b"x" * 60, b"x" * 41], [(b"content-length", b"5")]),
        ([b"x" * 60, b"x" * 41], [(b"content-length", b"many")]),
        ([b""], [(b"content-length", b"101")]),
    ],
)
async def test_over_the_limit_it_is_413(chunks: list[bytes], headers: list[tuple[bytes, bytes]]) -> None:
    status, body = await answer(chunks, headers)
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (413, "request_too_large")
    assert "100 bytes" in error["message"]


def test_only_parts_of_an_upload_may_be_large() -> None:
    part = {"method": "PUT", "path": "/api/v1/versions/adv_1/files/adapter_model.safetensors"}
    assert limit_for(part) == 10 * LIMIT
    assert limit_for(part | {"method": "POST"}) == LIMIT
    assert limit_for(part | {"path": "/api/v1/adapters"}) == LIMIT
