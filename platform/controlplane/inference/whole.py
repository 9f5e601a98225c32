"""One call of any endpoint that takes requests, answered whole: what a line of a batch is."""

from collections.abc import Awaitable, Callable
from typing import Final

from controlplane.inference.answers import Json, Shape
from controlplane.inference.api import ended
from controlplane.inference.asking import known_engine
from controlplane.inference.chat_answers import ChatShape
from controlplane.inference.embeddings import embed
from controlplane.inference.fields import Body, wrong
from controlplane.inference.resources import Door
from controlplane.inference.run import Run
from controlplane.inference.schemas import Wanted, parse_chat, parse_completion
from controlplane.inference.text_answers import TextShape
from controlplane.inference.tool_fields import read_tools
from controlplane.inference.tool_requests import chat_of

# Runs what is wanted: `services.start`, with everything but that bound.
Start = Callable[[Wanted], Awaitable[Run]]
Answer = Callable[[Door, Body, Start], Awaitable[Json]]


async def _chat(door: Door, body: Body, start: Start) -> Json:
    wanted, tools = _whole(parse_chat(body)), read_tools(body)
    chat = chat_of(wanted, tools, await known_engine(door))
    run = await start(chat.wanted)
    return await _shaped(ChatShape(chat.wanted, run, chat.new_reader(run)), run)


async def _completion(door: Door, body: Body, start: Start) -> Json:
    wanted = _whole(parse_completion(body))
    run = await start(wanted)
    return await _shaped(TextShape(wanted, run), run)


def _whole(wanted: Wanted) -> Wanted:
    if wanted.stream:
        raise wrong("stream", True, "a line of a batch is answered whole: leave it out")
    return wanted


async def _shaped(shape: Shape, run: Run) -> Json:
    return shape.whole(*await ended(run))


# By the address that a line names.
ANSWERS: Final[dict[str, Answer]] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completion,
    "/v1/embeddings": embed,
}
