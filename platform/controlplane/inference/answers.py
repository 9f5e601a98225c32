"""Bodies of answers in OpenAI's shapes. Pure: what happened goes in, JSON-ready objects come out."""

from decimal import Decimal
from typing import Any

from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Kind
from engine.protocol import Usage

Json = dict[str, Any]
_OBJECTS = {"chat": ("chat.completion", "chat.completion.chunk"), "text": ("text_completion", "text_completion")}
_PREFIXES = {"chat": "chatcmpl-", "text": "cmpl-"}


def generation_id(kind: Kind, request_id: str) -> str:
    return _PREFIXES[kind] + request_id


def request_id_of(generation: str) -> str:
    """The request that a generation id names; request ids name themselves."""
    for prefix in _PREFIXES.values():
        generation = generation.removeprefix(prefix)
    return generation


def money_text(amount: Decimal) -> str:
    """Exact, without an exponent and without trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def usage_body(usage: Usage, amount: Decimal) -> Json:
    """cached_tokens is a part of prompt_tokens. cost: what the tenant pays, USD. device_seconds: the device's share."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
        "cost": money_text(amount),
        "device_seconds": usage.device_ns / 1e9,
    }


def whole_body(kind: Kind, run: Run, text: str, ending: Ending) -> Json:
    """The answer to a request that did not ask for a stream."""
    if kind == "chat":
        content: Json = {"message": {"role": "assistant", "content": text, "refusal": None}}
    else:
        content = {"text": text}
    choice = {"index": 0, **content, "logprobs": None, "finish_reason": ending.finish_reason}
    usage = usage_body(ending.usage, ending.amount)
    return {**_head(kind, run, is_chunk=False), "choices": [choice], "usage": usage}


def _head(kind: Kind, run: Run, *, is_chunk: bool) -> Json:
    name = _OBJECTS[kind][is_chunk]
    return {"id": generation_id(kind, run.request_id), "object": name, "created": run.created, "model": run.model}


class Chunks:
    """The chunks of one stream: same id, created and model on each; `usage: null` where the caller asked for usage."""

    def __init__(self, kind: Kind, run: Run, *, include_usage: bool) -> None:
        self._kind = kind
        self._head = _head(kind, run, is_chunk=True)
        self._tail: Json = {"usage": None} if include_usage else {}

    def role(self) -> list[Json]:
        """A chat opens with whose words follow; a completion has no such chunk."""
        return [self._chunk({"role": "assistant", "content": ""}, "", None)] if self._kind == "chat" else []

    def text(self, text: str) -> Json:
        return self._chunk({"content": text}, text, None)

    def finish(self, reason: str) -> Json:
        return self._chunk({}, "", reason)

    def usage(self, ending: Ending) -> Json:
        return {**self._head, "choices": [], "usage": usage_body(ending.usage, ending.amount)}

    def _chunk(self, delta: Json, text: str, reason: str | None) -> Json:
        content: Json = {"delta": delta} if self._kind == "chat" else {"text": text}
        choice = {"index": 0, **content, "logprobs": None, "finish_reason": reason}
        return {**self._head, "choices": [choice], **self._tail}
