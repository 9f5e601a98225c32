"""Why a request is refused, in words with numbers, which limit of which level says so, and when to come back."""

from decimal import ROUND_CEILING, Decimal
from typing import Final

from controlplane.currency import amount_text
from controlplane.errors import ApiError, Conflict, InsufficientFunds, RateLimited
from controlplane.quotas.models import Level, Period
from controlplane.quotas.rates import limit_words, limits_of, longest_wait, never_fits
from tenants.sql import Row

_NAMES: Final = {
    Level.TENANT: "your account",
    Level.MEMBER: "the member who issued this API key",
    Level.KEY: "this API key",
    Level.ADAPTER: "your use of this model",
}


def level_name(row: Row) -> str:
    return _NAMES[Level(row["level"])]


def _binding(row: Row, kind: str) -> dict[str, str]:
    """Headers of every refusal: what refuses."""
    return {"x-limit-level": Level(row["level"]).name.lower(), "x-limit-kind": kind}


def rate_refusal(rows: list[Row], *, tokens: int) -> RateLimited | None:
    """None where every level has room for one more request of `tokens` now.

    Otherwise `Retry-After` is the moment from which *all* levels have room, rounded up to whole seconds.
    """
    for row in rows:
        if kind := never_fits(row, tokens=tokens):
            return _never(rows, row, kind, tokens)
    wait = longest_wait(rows, tokens=tokens)
    if wait is None:
        return None
    seconds = int(wait.seconds.to_integral_value(ROUND_CEILING))
    return RateLimited(
        f"Rate limit of {level_name(wait.row)} reached: {limit_words(wait.row, wait.kind)}. Try again in {seconds} s.",
        headers={
            **limits_of(rows).headers(),
            **_binding(wait.row, wait.kind),
            "Retry-After": str(seconds),
            "retry-after-ms": str(int((wait.seconds * 1000).to_integral_value(ROUND_CEILING))),
        },
    )


def _never(rows: list[Row], row: Row, kind: str, tokens: int) -> RateLimited:
    return RateLimited(
        f"This request may use {tokens} tokens (prompt and max_tokens), but {level_name(row)} is limited to "
        f"{limit_words(row, kind)}: shorten the prompt or lower max_tokens.",
        param="max_tokens",
        code=f"{kind}_exceeded",
        headers={**limits_of(rows).headers(), **_binding(row, kind), "x-should-retry": "false"},
    )


def room_refusal(levels: list[Row], amount: Decimal) -> ApiError | None:
    """None where every level has room for `amount` and for one more request beside those that run."""
    shown = limits_of(levels).headers()
    for row in levels:
        if row["budget"] is not None and row["spent"] + row["held"] + amount > row["budget"]:
            return _budget_refusal(row, amount, shown)
        if row["postpaid_limit"] is not None and row["owed"] + row["held"] + amount > row["postpaid_limit"]:
            return _credit_refusal(row, amount, shown)
    for row in levels:
        if row["concurrency"] is not None and row["running"] >= row["concurrency"]:
            return _concurrency_refusal(row, shown)
    return None


def _concurrency_refusal(row: Row, shown: dict[str, str]) -> RateLimited:
    """A slot is free when one of the running requests ends, which nobody can date: come back in a second."""
    name = level_name(row)
    return RateLimited(
        f"{name[0].upper()}{name[1:]} already runs {row['concurrency']} requests, as many as it may at once. "
        "Wait for one to end.",
        code="concurrency_limit_exceeded",
        headers={**shown, **_binding(row, "concurrency"), "Retry-After": "1"},
    )


def _budget_refusal(row: Row, amount: Decimal, shown: dict[str, str]) -> InsufficientFunds:
    period = "monthly budget" if row["period"] == Period.MONTH else "budget"
    return InsufficientFunds(
        f"The {period} of {level_name(row)} does not cover this request: of {amount_text(row['budget'])}, "
        f"{amount_text(row['spent'])} is spent and {amount_text(row['held'])} held for running requests; this one "
        f"may cost {amount_text(amount)}. Lower max_tokens, or ask for a larger budget.",
        headers={**shown, **_binding(row, "budget")},
    )


def _credit_refusal(row: Row, amount: Decimal, shown: dict[str, str]) -> InsufficientFunds:
    left = max(Decimal(0), row["postpaid_limit"] - row["owed"] - row["held"])
    return InsufficientFunds(
        f"Your account may owe {amount_text(row['postpaid_limit'])} beyond its credit, and has {amount_text(left)} "
        f"left of both; this request may cost {amount_text(amount)}. Lower max_tokens, buy credit, or pay what "
        "is owed.",
        headers={**shown, **_binding(row, "postpaid_limit")},
    )


def reused_id(request_id: str) -> ApiError:
    return Conflict(
        f"Request id {request_id} has been used: send another one.",
        code="request_id_reused",
        headers={"x-should-retry": "false"},
    )
