"""POST /v1/chat/completions and /v1/completions: plain asynchronous views."""

import asyncio

from django.http.response import HttpResponseBase

from controlplane.inference.answers import Chunks, generation_id, whole_body
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.replies import json_reply, stream_reply
from controlplane.inference.run import Run
from controlplane.inference.schemas import Wanted, parse_chat, parse_completion
from controlplane.inference.services import start
from controlplane.inference.sse import events


@endpoint("POST", "inference")
async def chat_completions(call: Call) -> HttpResponseBase:
    return await _generate(call, parse_chat(call.body()))


@endpoint("POST", "inference")
async def completions(call: Call) -> HttpResponseBase:
    return await _generate(call, parse_completion(call.body()))


async def _generate(call: Call, wanted: Wanted) -> HttpResponseBase:
    run = await start(call.door, call.principal, wanted, call.id)
    headers = {**(run.headers or {}), "x-generation-id": generation_id(wanted.kind, run.request_id)}
    if not wanted.stream:
        return json_reply(await _whole(wanted, run), headers=headers)
    chunks = Chunks(wanted.kind, run, include_usage=wanted.include_usage)
    frames = events(run, chunks, include_usage=wanted.include_usage)
    return stream_reply(frames, headers=headers, on_drop=run.cancel)


async def _whole(wanted: Wanted, run: Run) -> dict[str, object]:
    """Raises ApiError when the text broke off: half an answer is none."""
    try:
        text = "".join([piece async for piece in run.pieces() if piece])
    except asyncio.CancelledError:
        run.cancel()
        raise
    if run.error:
        raise run.error
    assert run.ending is not None
    return whole_body(wanted.kind, run, text, run.ending)
