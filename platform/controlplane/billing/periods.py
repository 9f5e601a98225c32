"""Billing periods, computed from (anchor, n): never from the period before, so that no error adds up.

Period n begins at local midnight of the anchor's date plus n months, in the tenant's zone. A day that the month lacks
is its last one; a midnight that the zone skips is the first instant after it.
"""

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

DEFAULT_ANCHOR = date(2000, 1, 1)  # calendar months


@dataclass(frozen=True)
class Calendar:
    """When a tenant's periods begin. anchor: the local date on which period 0 did."""

    anchor: date
    zone: ZoneInfo

    def start(self, n: int) -> datetime:
        """The UTC instant at which period n begins and period n - 1 ends. n may be negative."""
        months = self.anchor.year * 12 + self.anchor.month - 1 + n
        year, month = divmod(months, 12)
        day = min(self.anchor.day, calendar.monthrange(year, month + 1)[1])
        # fold=0: of a midnight that comes twice the first; one that is skipped reads as the instant of the jump.
        return datetime.combine(date(year, month + 1, day), time(), self.zone).astimezone(UTC)

    def number(self, at: datetime) -> int:
        """The n whose period [start(n), start(n + 1)) holds the instant."""
        local = at.astimezone(self.zone)
        n = (local.year - self.anchor.year) * 12 + local.month - self.anchor.month
        while self.start(n) > at:
            n -= 1
        while self.start(n + 1) <= at:
            n += 1
        return n

    def ends_between(self, after: datetime, up_to: datetime) -> Iterator[datetime]:
        """Every end of a period in (after, up_to], in order."""
        n = self.number(after) + 1
        while (end := self.start(n)) <= up_to:
            yield end
            n += 1

    def periods_in(self, start: datetime, end: datetime) -> Fraction:
        """How many periods [start, end) covers: a part of one, or several."""
        found, n, at = Fraction(0), self.number(start), start
        while at < end:
            until = min(end, self.start(n + 1))
            found += Fraction(_micros(until - at), _micros(self.start(n + 1) - self.start(n)))
            n, at = n + 1, until
        return found


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
