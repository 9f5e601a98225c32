"""POST /v1/responses: one answer, whole or as the documented events. Nothing of it is stored."""

import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace

import msgspec
from django.http.response import HttpResponseBase

from controlplane.errors import ApiError
from controlplane.inference.answer_text import AnswerText, Reading
from controlplane.inference.answers import RESPONSE_PREFIX, Json
from controlplane.inference.api import ended
from controlplane.inference.asking import known_engine
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.logprob_shapes import chat_logprobs
from controlplane.inference.pieces import Piece
from controlplane.inference.replies import json_reply, stream_reply
from controlplane.inference.response_body import error_of_response, response_body
from controlplane.inference.response_fields import Asked, parse_response
from controlplane.inference.response_items import OutputItems
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import read_timeout
from controlplane.inference.services import start
from controlplane.inference.sse import KEEP_ALIVE_SECONDS, PING
from controlplane.inference.tool_requests import chat_of

_encode = msgspec.json.Encoder().encode


@endpoint("POST", "inference")
async def responses(call: Call) -> HttpResponseBase:
    asked = parse_response(call.body())
    chat = chat_of(asked.wanted, asked.tools, await known_engine(call.door))
    wanted = replace(chat.wanted, deadline_s=read_timeout(call.request.META))
    run = await start(call.door, call.principal, wanted, call.id)
    answer = ResponseAnswer(asked, run, chat.reading(run))
    headers = {**(run.headers or {}), "x-generation-id": answer.id}
    if wanted.stream:
        return stream_reply(response_events(run, answer), headers=headers, on_drop=run.cancel)
    [piece], ending = await ended(run)
    list(answer.read(piece))
    return json_reply(answer.ended(ending), headers=headers)


class ResponseAnswer:
    """One response and its events, numbered in the order in which they are made."""

    def __init__(self, asked: Asked, run: Run, reading: Reading) -> None:
        self.id = RESPONSE_PREFIX + run.request_id
        self._asked = asked
        self._run = run
        self._text = AnswerText(reading)
        self._output = OutputItems()
        self._untold: list[Json] = []  # log-probabilities of tokens whose text is not told yet
        self._is_cut = False
        self._number = -1

    def opening(self) -> Iterator[Json]:
        for name in ("created", "in_progress"):
            yield self._event({"type": f"response.{name}", "response": self._body("in_progress")})

    def read(self, piece: Piece) -> Iterator[Json]:
        self._untold += chat_logprobs(piece.logprobs)["content"]
        parts = self._text.feed(piece.text)
        if piece.finish_reason is not None:
            parts += self._text.finish()
        for part in parts:
            told, self._untold = self._untold, []
            for event in self._output.add(part, told):
                yield self._event(event)
        if piece.finish_reason is not None:
            self._is_cut = piece.finish_reason == "length"
            for event in self._output.finish("incomplete" if self._is_cut else "completed", self._untold):
                yield self._event(event)

    def ended(self, ending: Ending) -> Json:
        return self._body("incomplete" if self._is_cut else "completed", ending)

    def closing(self, ending: Ending) -> Json:
        body = self.ended(ending)
        return self._event({"type": f"response.{body['status']}", "response": body})

    def failing(self, error: ApiError) -> Json:
        body = {**self._body("failed"), "error": error_of_response(error)}
        return self._event({"type": "response.failed", "response": body})

    def _body(self, status: str, ending: Ending | None = None) -> Json:
        return response_body(self._asked, self._run, self.id, status, self._output.items, ending, int(time.time()))

    def _event(self, event: Json) -> Json:
        self._number += 1
        return {**event, "sequence_number": self._number}


async def response_events(
    run: Run, answer: ResponseAnswer, *, keep_alive: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[bytes, None]:
    """Ends with `response.completed`, `incomplete` or `failed`. When the reader leaves, the run is cancelled."""
    try:
        for event in answer.opening():
            yield _frame(event)
        async for piece in run.pieces(keep_alive):
            if piece is None:
                yield PING
                continue
            for event in answer.read(piece):
                yield _frame(event)
        if run.error:
            yield _frame(answer.failing(run.error))
        else:
            assert run.ending is not None
            yield _frame(answer.closing(run.ending))
    finally:
        run.cancel()


def _frame(event: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _encode(event))
