"""Stretches of time, half-open: what of them is whole units of the clock, and what is left of them beside others."""

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

Span = tuple[datetime, datetime]
# Any midnight would do.
_ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)


def unit_of(at: datetime, minutes: int) -> datetime:
    """The start, in UTC, of the quarter of an hour, hour or day of UTC that an instant is in."""
    return at.astimezone(UTC) - (at - _ORIGIN) % timedelta(minutes=minutes)


def whole_units(spans: Iterable[Span], minutes: int) -> list[Span]:
    """Of each span what is whole units, where there are any."""
    unit = timedelta(minutes=minutes)
    inner = ((since + (_ORIGIN - since) % unit, unit_of(until, minutes)) for since, until in spans)
    return [(since, until) for since, until in inner if since < until]


def minus(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """What of the spans is in none of the holes. Neither overlap among themselves."""
    left, ahead = [], deque(sorted(holes))
    for since, until in sorted(spans):
        while ahead and ahead[0][0] < until:
            hole_since, hole_until = ahead[0]
            if since < hole_since:
                left.append((since, hole_since))
            since = max(since, hole_until)
            if hole_until > until:
                break  # it reaches into the next one
            ahead.popleft()
        if since < until:
            left.append((since, until))
    return left
