"""What answers of every shape have in common. Pure: what happened goes in, JSON-ready objects come out."""

from decimal import Decimal
from typing import Any, Protocol

from controlplane.currency import exact_text
from controlplane.inference.pieces import Piece
from controlplane.inference.run import Ending
from engine.protocol import Usage

Json = dict[str, Any]
CHAT_PREFIX = "chatcmpl-"
TEXT_PREFIX = "cmpl-"
RESPONSE_PREFIX = "resp_"


class Shape(Protocol):
    """How one call is answered. Streamed: `opening`, `chunks` of every piece, `closing`; else `whole` alone."""

    generation_id: str

    def opening(self) -> list[Json]: ...

    def chunks(self, piece: Piece) -> list[Json]: ...

    def closing(self, ending: Ending) -> list[Json]: ...

    def whole(self, choices: list[Piece], ending: Ending) -> Json: ...


def request_id_of(generation: str) -> str:
    """The request that a generation id names; request ids name themselves."""
    for prefix in (CHAT_PREFIX, TEXT_PREFIX, RESPONSE_PREFIX):
        generation = generation.removeprefix(prefix)
    return generation


def usage_body(usage: Usage, amount: Decimal) -> Json:
    """cached_tokens is a part of prompt_tokens. cost: what the tenant pays. device_seconds: the device's share."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
        "cost": exact_text(amount),
        "device_seconds": usage.device_ns / 1e9,
    }


def choice_body(index: int, content: Json, logprobs: Json | None, reason: str | None, stop: str | int | None) -> Json:
    """stop_reason: vLLM's field, where a stop string or token of the caller's ended the text."""
    told = {} if stop is None else {"stop_reason": stop}
    return {"index": index, **content, "logprobs": logprobs, "finish_reason": reason, **told}
