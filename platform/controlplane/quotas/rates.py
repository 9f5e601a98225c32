"""Limits as a caller sees them: what is left, whose limit it is, when it is full again, when to come back."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final, NamedTuple

from controlplane.currency import exact_text
from controlplane.quotas.models import Level, Period
from tenants.sql import Row

SECONDS_PER_MINUTE: Final = 60
_SPANS: Final = {"tokens_per_minute": "minute", "tokens_per_day": "day", "tokens_per_month": "month"}


class Meter(NamedTuple):
    """One limit. name: as in `x-ratelimit-limit-<name>`. reset: seconds until all of it is there again; None: nobody
    knows when."""

    name: str
    level: Level
    limit: Decimal | int
    remaining: Decimal | int
    reset: Decimal | None

    def headers(self) -> Iterator[tuple[str, str]]:
        yield f"x-ratelimit-limit-{self.name}", number_text(self.limit)
        yield f"x-ratelimit-remaining-{self.name}", number_text(self.remaining)
        if self.reset is not None:
            yield f"x-ratelimit-reset-{self.name}", duration_text(self.reset)
        yield f"x-ratelimit-level-{self.name}", self.level.name.lower()


@dataclass(frozen=True)
class Limits:
    """meters: of each kind of limit the tightest over all levels. over_soft: the levels whose soft budget is reached.
    weight: the tenant's, for the engine."""

    meters: tuple[Meter, ...] = ()
    over_soft: tuple[Level, ...] = ()
    weight: Decimal = Decimal(1)

    def headers(self) -> dict[str, str]:
        found = dict(header for meter in self.meters for header in meter.headers())
        if self.over_soft:
            found["x-budget-alert"] = ",".join(level.name.lower() for level in self.over_soft)
        return found


def number_text(number: Decimal | int) -> str:
    return str(number) if isinstance(number, int) else exact_text(number)


def duration_text(seconds: Decimal) -> str:
    """As OpenAI writes it: `12ms`, `1s`, `6m0s`. Rounded up, so that it never promises too early."""
    ms = int((seconds * 1000).to_integral_value(ROUND_CEILING))
    if ms < 1000:
        return f"{ms}ms"
    minutes, rest = divmod(ms, 60_000)
    text = f"{Decimal(rest) / 1000:f}s"
    return f"{minutes}m{text}" if minutes else text


def limits_of(rows: list[Row]) -> Limits:
    """The tightest meters of quota rows, each with its limits and what is used of them as of now."""
    tightest: dict[str, Meter] = {}
    for meter in (meter for row in rows for meter in meters_of(row)):
        known = tightest.get(meter.name)
        if known is None or _tightness(meter) < _tightness(known):
            tightest[meter.name] = meter
    over = tuple(Level(row["level"]) for row in rows if is_over_soft(row))
    weight = next((row["tenant_weight"] for row in rows if row["level"] == Level.TENANT), Decimal(1))
    return Limits(tuple(tightest.values()), over, weight)


def _tightness(meter: Meter) -> tuple[Decimal | int, Decimal | int]:
    return meter.remaining, -(meter.reset or 0)


def is_over_soft(row: Row) -> bool:
    return row["soft_budget"] is not None and row["spent"] + row["held"] >= row["soft_budget"]


def meters_of(row: Row) -> Iterator[Meter]:
    """Those that the level has a limit for."""
    level = Level(row["level"])
    for name, unit in (("requests", "request"), ("tokens", "token")):
        if (limit := row[f"{name}_per_minute"]) is not None:
            credit = row[f"{unit}_credit"]
            wait = (SECONDS_PER_MINUTE * limit - credit) / limit
            yield Meter(name, level, limit, int(credit // SECONDS_PER_MINUTE), wait)
    for span in ("day", "month"):
        if (limit := row[f"tokens_per_{span}"]) is not None:
            left = max(0, limit - row[f"{span}_tokens"])
            yield Meter(f"tokens-{span}", level, limit, left, row[f"{span}_ends_in"])
    if (limit := row["concurrency"]) is not None:
        yield Meter("concurrency", level, limit, max(0, limit - row["running"]), None)
    if (limit := row["budget"]) is not None:
        left = max(Decimal(0), limit - row["spent"] - row["held"])
        yield Meter("budget", level, limit, left, row["month_ends_in"] if row["period"] == Period.MONTH else None)


class Wait(NamedTuple):
    """kind: the limit that makes a request wait; seconds: until it has room."""

    seconds: Decimal
    kind: str
    row: Row


def longest_wait(rows: list[Row], *, tokens: int) -> Wait | None:
    """What one more request of `tokens` has to wait for longest, over all levels; None where there is room now."""
    waits = (wait for row in rows for wait in _waits(row, tokens))
    return max(waits, key=lambda wait: wait.seconds, default=None)


def _waits(row: Row, tokens: int) -> Iterator[Wait]:
    for kind, credit, cost in (
        ("requests_per_minute", row["request_credit"], SECONDS_PER_MINUTE),
        ("tokens_per_minute", row["token_credit"], SECONDS_PER_MINUTE * tokens),
    ):
        if row[kind] is not None and credit < cost:
            yield Wait((cost - credit) / row[kind], kind, row)
    for span in ("day", "month"):
        limit = row[f"tokens_per_{span}"]
        if limit is not None and row[f"{span}_tokens"] + tokens > limit:
            yield Wait(Decimal(row[f"{span}_ends_in"]), f"tokens_per_{span}", row)


def limit_words(row: Row, kind: str) -> str:
    """As a part of a sentence: "60 requests a minute"."""
    if kind == "requests_per_minute":
        return f"{row[kind]} requests a minute"
    return f"{row[kind]} tokens a {_SPANS[kind]}" + ("" if kind == "tokens_per_minute" else " (UTC)")


def never_fits(row: Row, *, tokens: int) -> str | None:
    """The kind of token limit that is smaller than the one request, which would wait for ever."""
    return next((kind for kind in _SPANS if row[kind] is not None and tokens > row[kind]), None)
