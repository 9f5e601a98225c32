"""Chat completions in OpenAI's shape, whole and streamed."""

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from controlplane.inference.answers import CHAT_PREFIX, Json, choice_body, usage_body
from controlplane.inference.logprob_shapes import chat_logprobs, prompt_logprobs
from controlplane.inference.pieces import Piece
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Wanted
from engine.protocol import TokenLogprob


class MessageReader(Protocol):
    """Reads one choice's text as a chat message: the place where a thought or a tool call is told from what is said."""

    def feed(self, text: str) -> list[Json]:
        """Deltas for what is certain now."""

    def finish(self, reason: str) -> tuple[list[Json], str]:
        """Deltas for the rest, and the `finish_reason` to tell."""

    def whole(self, text: str, reason: str) -> tuple[Json, str]:
        """The message of a text that came at once, and the `finish_reason` to tell."""


class PlainReader:
    """All of it is said."""

    def feed(self, text: str) -> list[Json]:
        return [{"content": text}] if text else []

    def finish(self, reason: str) -> tuple[list[Json], str]:
        return [], reason

    def whole(self, text: str, reason: str) -> tuple[Json, str]:
        return {"role": "assistant", "content": text, "refusal": None}, reason


class ChatShape:
    """A `Shape`. Every chunk has the same id, created and model, and `usage: null` where the caller asked for usage."""

    def __init__(self, wanted: Wanted, run: Run, new_reader: Callable[[], MessageReader] = PlainReader) -> None:
        self.generation_id = CHAT_PREFIX + run.request_id
        self._head = {"id": self.generation_id, "created": run.created, "model": run.model}
        self._wanted = wanted
        self._tail: Json = {"usage": None} if wanted.include_usage else {}
        self._shows_logprobs = wanted.sampling.logprobs is not None
        self._readers: defaultdict[int, MessageReader] = defaultdict(new_reader)
        # Log-probabilities of tokens whose text is not told yet.
        self._untold: defaultdict[int, list[TokenLogprob]] = defaultdict(list)

    def opening(self) -> list[Json]:
        said = {"role": "assistant", "content": ""}
        return [self._chunk(choice_body(i, {"delta": said}, None, None, None)) for i in range(self._wanted.sampling.n)]

    def chunks(self, piece: Piece) -> list[Json]:
        reader = self._readers[piece.index]
        self._untold[piece.index] += piece.logprobs
        deltas = reader.feed(piece.text)
        if piece.finish_reason is None:
            return [self._delta(piece.index, delta) for delta in deltas]
        rest, reason = reader.finish(piece.finish_reason)
        told = [self._delta(piece.index, delta) for delta in (*deltas, *rest)]
        return [*told, self._delta(piece.index, {}, reason, piece.stop_reason)]

    def closing(self, ending: Ending) -> list[Json]:
        usage = usage_body(ending.usage, ending.amount)
        return [{**self._chunk(), "usage": usage}] if self._wanted.include_usage else []

    def whole(self, choices: list[Piece], ending: Ending) -> Json:
        body = {
            **self._head,
            "object": "chat.completion",
            "choices": [self._whole_choice(piece) for piece in choices],
            "usage": usage_body(ending.usage, ending.amount),
        }
        found = choices[0].prompt_logprobs
        return body if found is None else {**body, "prompt_logprobs": prompt_logprobs(found)}

    def _whole_choice(self, piece: Piece) -> Json:
        assert piece.finish_reason is not None
        message, reason = self._readers[piece.index].whole(piece.text, piece.finish_reason)
        logprobs = chat_logprobs(piece.logprobs) if self._shows_logprobs else None
        return choice_body(piece.index, {"message": message}, logprobs, reason, piece.stop_reason)

    def _delta(self, index: int, delta: Json, reason: str | None = None, stop: str | int | None = None) -> Json:
        untold = self._untold.pop(index, None)
        return self._chunk(
            choice_body(index, {"delta": delta}, chat_logprobs(untold) if untold else None, reason, stop)
        )

    def _chunk(self, *choices: Json) -> Json:
        return {**self._head, "object": "chat.completion.chunk", "choices": list(choices), **self._tail}
