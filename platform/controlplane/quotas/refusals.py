"""Why a request is refused, in words with numbers, and when to come back."""

from decimal import ROUND_CEILING, Decimal

from controlplane.errors import ApiError, Conflict, InsufficientFunds, RateLimited
from controlplane.quotas.rates import limits_of, never_fits, reached, wait_seconds
from tenants.sql import Row


def level_name(row: Row) -> str:
    return "this API key" if row["key_id"] else "your account"


def rate_refusal(rows: list[Row], *, tokens: int) -> RateLimited | None:
    """None where every level has room for one more request of `tokens` now.

    Otherwise `Retry-After` is the moment from which *all* levels have room, rounded up to whole seconds.
    """
    hopeless = next((row for row in rows if never_fits(row, tokens=tokens)), None)
    if hopeless is not None:
        return _never(hopeless, tokens)
    wait = max((wait_seconds(row, tokens=tokens) for row in rows), default=Decimal(0))
    if wait == 0:
        return None
    row = max(rows, key=lambda each: wait_seconds(each, tokens=tokens))
    seconds = int(wait.to_integral_value(ROUND_CEILING))
    return RateLimited(
        f"Rate limit of {level_name(row)} reached: {reached(row, tokens=tokens)}. Try again in {seconds} s.",
        headers={
            **limits_of(rows).headers(),
            "Retry-After": str(seconds),
            "retry-after-ms": str(int((wait * 1000).to_integral_value(ROUND_CEILING))),
        },
    )


def _never(row: Row, tokens: int) -> RateLimited:
    span = never_fits(row, tokens=tokens)
    return RateLimited(
        f"This request may use {tokens} tokens (prompt and max_tokens), but {level_name(row)} is limited to "
        f"{row[f'tokens_per_{span}']} a {span}: shorten the prompt or lower max_tokens.",
        param="max_tokens",
        code=f"tokens_per_{span}_exceeded",
        headers={**limits_of([row]).headers(), "x-should-retry": "false"},
    )


def room_refusal(levels: list[Row], amount: Decimal) -> ApiError | None:
    """None where every level has room for `amount` and for one more request beside those that run."""
    for row in levels:
        if row["budget"] is not None and row["spent"] + row["held"] + amount > row["budget"]:
            return _budget_refusal(row, amount)
        if row["postpaid_limit"] is not None and row["owed"] + row["held"] + amount > row["postpaid_limit"]:
            return _credit_refusal(row, amount)
    for row in levels:
        if row["concurrency"] is not None and row["running"] >= row["concurrency"]:
            return _concurrency_refusal(row)
    return None


def _concurrency_refusal(row: Row) -> RateLimited:
    """A slot is free when one of the running requests ends, which nobody can date: come back in a second."""
    return RateLimited(
        f"{level_name(row).capitalize()} already runs {row['concurrency']} requests, as many as it may at once. "
        "Wait for one to end.",
        code="concurrency_limit_exceeded",
        headers={"Retry-After": "1"},
    )


def _budget_refusal(row: Row, amount: Decimal) -> InsufficientFunds:
    period = "monthly budget" if row["period"] == "month" else "budget"
    return InsufficientFunds(
        f"The {period} of {level_name(row)} does not cover this request: of ${row['budget'].normalize():f}, "
        f"${row['spent'].normalize():f} is spent and ${row['held'].normalize():f} held for running requests; this one "
        f"may cost ${amount.normalize():f}. Lower max_tokens, or ask for a larger budget."
    )


def _credit_refusal(row: Row, amount: Decimal) -> InsufficientFunds:
    left = max(Decimal(0), row["postpaid_limit"] - row["owed"] - row["held"])
    return InsufficientFunds(
        f"Your account may owe ${row['postpaid_limit'].normalize() + 0:f} beyond its credit, and has "
        f"${left.normalize() + 0:f} left of both; this request may cost ${amount.normalize():f}. Lower max_tokens, buy "
        "credit, or pay what is owed."
    )


def reused_id(request_id: str) -> ApiError:
    return Conflict(
        f"Request id {request_id} has been used: send another one.",
        code="request_id_reused",
        headers={"x-should-retry": "false"},
    )
