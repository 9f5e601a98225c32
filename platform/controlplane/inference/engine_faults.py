"""How the engine lets a caller down, as types."""

import math
from collections.abc import Mapping

from controlplane.errors import ApiError, InvalidRequest, RateLimited, Unavailable
from controlplane.inference.parameters import TIMEOUT_HEADER
from engine.protocol import EngineError

RETRY_SECONDS = 5  # an engine is up again in about that time
# The request itself is at fault; any other code is the platform's affair and its text stays in our logs.
_CALLERS_FAULT = frozenset(
    {
        "context_length_exceeded",
        "invalid_grammar",
        "invalid_prompt",
        "invalid_sampling",
        "prompt_too_long_for_pool",
    }
)
# The wire's name of a field -> the API's, where the request itself does not say (`Wanted.names`).
_PARAMS = {"include_stop": "include_stop_str_in_output"}
# Fields of the wire that a request names by one.
_NAMED = {"text": "prompt", "token_ids": "prompt", "messages": "prompt", "response_format": "grammar"}


class EngineGone(Exception):
    """The engine died, was restarted, fell silent or cannot be reached: what it was doing is unknown until its journal
    is read."""


class EngineRefusal(Exception):
    """The engine's own word on a call or request."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


class DeadlineExceeded(ApiError):
    """408: what had been generated until then is billed."""

    status = 408
    code = "deadline_exceeded"


def engine_gone() -> ApiError:
    return Unavailable(
        "The engine was lost while it worked on this request. It restarts by itself: send the request again.",
        code="engine_unavailable",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )


def engine_draining() -> ApiError:
    return Unavailable(
        "The engine takes no new requests just now: send this one again.",
        code="engine_draining",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )


def error_of(refusal: EngineError, names: Mapping[str, str]) -> ApiError:
    """What the caller is told, in its own `names` of fields. Paths and internals in an engine's message never leave."""
    if refusal.code in _CALLERS_FAULT:
        named = _NAMED.get(refusal.param or "", refusal.param or "")
        param = names.get(named) or _PARAMS.get(named, named) or None
        return InvalidRequest(refusal.message, param=param, code=refusal.code)
    if refusal.code == "engine_draining":
        return engine_draining()
    if refusal.code == "deadline_exceeded":
        return DeadlineExceeded(
            f"The request had not ended when its {TIMEOUT_HEADER} was over: allow it more time, or ask for less.",
            headers={"x-should-retry": "false"},  # the same request would be billed, and end, the same again
        )
    if refusal.code.startswith("adapter"):
        text = "The adapter could not be loaded. Send the request again; if it stays so, upload the adapter anew."
        return Unavailable(text, param="model", code="adapter_unavailable")
    seconds = math.ceil(refusal.retry_after_s or RETRY_SECONDS)
    headers = {"x-should-retry": "false"} if refusal.permanent else {"Retry-After": str(seconds)}
    if refusal.code == "tenant_overloaded":
        text = f"Too many of your requests are waiting for their turn. Send this one again in {seconds} s."
        return RateLimited(text, code=refusal.code, headers=headers)
    if refusal.code == "engine_overloaded":
        text = f"Too many requests are waiting for their turn. Send this one again in {seconds} s."
        return Unavailable(text, code=refusal.code, headers=headers)
    return Unavailable("The engine could not serve this request.", code=refusal.code, headers=headers)
