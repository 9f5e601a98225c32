"""Attempts at lines, and the ids that each of their requests to the engine is billed under."""

from typing import Final

# `<batch>-<line>-<attempt>`; of a line with several prompts, the others add `-1`, `-2`, ... (`take_orders`).
ATTEMPT: Final = "{batch}-{line}-{attempt}"


def attempt_id(batch_id: str, number: int, attempt: int) -> str:
    """number: of the line."""
    return ATTEMPT.format(batch=batch_id, line=number, attempt=attempt)


def request_ids(first: str, prompts: int) -> list[str]:
    return [f"{first}-{i}" if i else first for i in range(prompts)]


def batch_of(request_id: str) -> str | None:
    """The batch that a request is billed for; None for one that is no batch's."""
    head = request_id.partition("-")[0]
    return head if head.startswith("batch_") and head != request_id else None
