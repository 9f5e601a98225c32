"""How fast answers were, as a plan (`tenants.sql`). Quantiles do not add up: they are those of the events themselves,
read from an index alone (`UsageEvent`), which bounds what that costs."""

from dataclasses import dataclass
from typing import Final

from controlplane.billing.slices import Slice
from tenants.sql import Plan

_TO_FIRST: Final = "date_part('epoch', e.first_at - e.started_at) * 1000"
_BETWEEN: Final = "date_part('epoch', e.finished_at - e.first_at) * 1000 / (e.completion_tokens - 1)"
_QUANTILES: Final = "percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP"
_SPREAD: Final = f"""count(e.first_at) AS answers,
    {_QUANTILES} (ORDER BY {_TO_FIRST}) FILTER (WHERE e.first_at IS NOT NULL) AS ttft,
    {_QUANTILES} (ORDER BY {_BETWEEN}) FILTER (WHERE e.first_at IS NOT NULL AND e.completion_tokens > 1) AS itl"""


@dataclass(frozen=True)
class Spread:
    """Milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True)
class Latency:
    """answers: those whose first token's time is known; the door notes it, the engine's journal does not. itl: each
    answer's mean time from one token to the next, over answers of at least two tokens. None: no such answer."""

    answers: int
    ttft: Spread | None
    itl: Spread | None


def latency(wanted: Slice) -> Plan[Latency]:
    [row] = yield from wanted.of_events(_SPREAD)
    return Latency(row["answers"], _spread(row["ttft"]), _spread(row["itl"]))


def _spread(found: list[float] | None) -> Spread | None:
    return Spread(float(found[0]), float(found[1])) if found else None
