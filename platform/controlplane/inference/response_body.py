"""The response object: what was asked for, and what came of it."""

from typing import Any, Final

from controlplane.errors import ApiError
from controlplane.inference.answers import Json, usage_body
from controlplane.inference.response_fields import Asked
from controlplane.inference.run import Ending, Run

# Fields of the request that the answer repeats, and what they are where they were left out.
_REPEATED: Final[dict[str, Any]] = {
    "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "parallel_tool_calls": True, "prompt_cache_key": None, "reasoning": None, "safety_identifier": None,
    "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_logprobs": 0,
    "top_p": 1.0, "user": None,
}  # fmt: skip


def response_body(
    asked: Asked, run: Run, response_id: str, status: str, items: list[Json], ending: Ending | None, now: int
) -> Json:
    """ending: None while it is under way. now: unix seconds."""
    repeated = {
        name: default if asked.body.get(name) is None else asked.body[name] for name, default in _REPEATED.items()
    }
    return {
        "id": response_id,
        "object": "response",
        "created_at": run.created,
        "completed_at": now if status == "completed" else None,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": run.model,
        "output": list(items),
        "previous_response_id": None,
        "service_tier": "default",
        "store": False,
        "truncation": "disabled",
        "usage": _usage(ending) if ending else None,
        **repeated,
    }


def error_of_response(error: ApiError) -> Json:
    """In the codes that clients of this API know; the text says what ours means."""
    code = {429: "rate_limit_exceeded"}.get(error.status, "server_error" if error.status >= 500 else "invalid_prompt")
    return {"code": code, "message": error.message}


def _usage(ending: Ending) -> Json:
    ours = usage_body(ending.usage, ending.amount)
    return {
        "input_tokens": ours["prompt_tokens"],
        "input_tokens_details": {**ours["prompt_tokens_details"], "cache_write_tokens": 0},
        "output_tokens": ours["completion_tokens"],
        "output_tokens_details": ours["completion_tokens_details"],
        "total_tokens": ours["total_tokens"],
        "cost": ours["cost"],
        "device_seconds": ours["device_seconds"],
    }
