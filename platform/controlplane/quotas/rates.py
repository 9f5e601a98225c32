"""Rate limits as a caller sees them: what is left, when it is full again, when to come back."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from tenants.sql import Row

SECONDS_PER_MINUTE = 60


@dataclass(frozen=True)
class Meter:
    """One rate limit. reset: seconds until the bucket is full."""

    limit: int
    remaining: int
    reset: Decimal


@dataclass(frozen=True)
class Limits:
    """The tightest request and token limit over all levels; None where there is none. weight: the tenant's, for the
    engine."""

    requests: Meter | None = None
    tokens: Meter | None = None
    weight: Decimal = Decimal(1)

    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, meter in (("requests", self.requests), ("tokens", self.tokens)):
            if meter is not None:
                found[f"x-ratelimit-limit-{name}"] = str(meter.limit)
                found[f"x-ratelimit-remaining-{name}"] = str(meter.remaining)
                found[f"x-ratelimit-reset-{name}"] = duration_text(meter.reset)
        return found


def duration_text(seconds: Decimal) -> str:
    """As OpenAI writes it: `12ms`, `1s`, `6m0s`. Rounded up, so that it never promises too early."""
    ms = int((seconds * 1000).to_integral_value(ROUND_CEILING))
    if ms < 1000:
        return f"{ms}ms"
    minutes, rest = divmod(ms, 60_000)
    text = f"{Decimal(rest) / 1000:f}s"
    return f"{minutes}m{text}" if minutes else text


def limits_of(rows: list[Row]) -> Limits:
    """The tightest meters of quota rows, each with its limits and its credits as of now."""
    requests = _tightest(rows, "requests_per_minute", "request_credit")
    weight = next((row["tenant_weight"] for row in rows if row["key_id"] is None), Decimal(1))
    return Limits(requests, _tightest(rows, "tokens_per_minute", "token_credit"), weight)


def _tightest(rows: list[Row], limit: str, credit: str) -> Meter | None:
    meters = [_meter(row[limit], row[credit]) for row in rows if row[limit] is not None]
    return min(meters, key=lambda meter: (meter.remaining, -meter.reset), default=None)


def _meter(limit: int, credit: Decimal) -> Meter:
    capacity = SECONDS_PER_MINUTE * limit
    return Meter(limit, int(credit // SECONDS_PER_MINUTE), (capacity - credit) / limit)


def wait_seconds(row: Row, *, tokens: int) -> Decimal:
    """Seconds until this level has room for one more request of `tokens`; 0 where it has room now."""
    for_request = _wait(row["requests_per_minute"], row["request_credit"], 1)
    for_tokens = _wait(row["tokens_per_minute"], row["token_credit"], tokens)
    return max(for_request, for_tokens, _wait_for_day(row, tokens))


def _wait(limit: int | None, credit: Decimal, cost: int) -> Decimal:
    if limit is None:
        return Decimal(0)
    return max(Decimal(0), (SECONDS_PER_MINUTE * cost - credit) / limit)


def _wait_for_day(row: Row, tokens: int) -> Decimal:
    limit, ends_in = row["tokens_per_day"], Decimal(row["day_ends_in"])
    return Decimal(0) if limit is None or row["day_tokens"] + tokens <= limit else ends_in


def reached(row: Row, *, tokens: int) -> str:
    """The limit that makes a request of `tokens` wait longest, as a part of a sentence."""
    if _wait_for_day(row, tokens):
        return f"{row['tokens_per_day']} tokens a day (UTC)"
    if row["requests_per_minute"] is not None and row["request_credit"] < SECONDS_PER_MINUTE:
        return f"{row['requests_per_minute']} requests a minute"
    return f"{row['tokens_per_minute']} tokens a minute"


def never_fits(row: Row, *, tokens: int) -> str | None:
    """The token limit that is smaller than the one request: it would wait for ever."""
    for span in ("minute", "day"):
        limit = row[f"tokens_per_{span}"]
        if limit is not None and tokens > limit:
            return span
    return None
