"""POST /v1/chat/completions and /v1/completions: plain asynchronous views."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from django.http.response import HttpResponseBase

from controlplane.inference.answers import Shape
from controlplane.inference.asking import known_engine
from controlplane.inference.chat_answers import ChatShape
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.pieces import Piece, whole_choices
from controlplane.inference.replies import json_reply, stream_reply
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Wanted, parse_chat, parse_completion, read_timeout
from controlplane.inference.services import start
from controlplane.inference.sse import events
from controlplane.inference.text_answers import TextShape
from controlplane.inference.tool_fields import read_tools
from controlplane.inference.tool_requests import chat_of


@endpoint("POST", "inference")
async def chat_completions(call: Call) -> HttpResponseBase:
    body = call.body()
    wanted, tools = parse_chat(body), read_tools(body)
    chat = chat_of(wanted, tools, await known_engine(call.door))
    return await answer(call, chat.wanted, lambda wanted, run: ChatShape(wanted, run, chat.new_reader(run)))


@endpoint("POST", "inference")
async def completions(call: Call) -> HttpResponseBase:
    return await answer(call, parse_completion(call.body()), TextShape)


async def answer(call: Call, wanted: Wanted, shape_of: Callable[[Wanted, Run], Shape]) -> HttpResponseBase:
    """Run what is wanted, and answer in that shape, whole or streamed."""
    wanted = replace(wanted, deadline_s=read_timeout(call.request.META))
    run = await start(call.door, call.principal, wanted, call.id)
    shape = shape_of(wanted, run)
    headers = {**(run.headers or {}), "x-generation-id": shape.generation_id}
    if not wanted.stream:
        return json_reply(shape.whole(*await ended(run)), headers=headers)
    return stream_reply(events(run, shape), headers=headers, on_drop=run.cancel)


async def ended(run: Run) -> tuple[list[Piece], Ending]:
    """Each choice as one piece. Raises ApiError when the text broke off: half an answer is none."""
    try:
        choices = await whole_choices(run.pieces())
    except asyncio.CancelledError:
        run.cancel()
        raise
    if run.error:
        raise run.error
    assert run.ending is not None
    return choices, run.ending
