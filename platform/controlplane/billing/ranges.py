"""The range of time a caller asks about: half-open, in one zone, which every answer repeats."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils.timezone import now as now_utc
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from controlplane.errors import InvalidRequest

RANGE_PARAMETERS = [
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="inclusive; the start of this month unless told"),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="exclusive; now unless told"),
    OpenApiParameter("tz", str, description="IANA name of the zone for days, hours and bare times; UTC unless told"),
]
MAX_STEPS = {"hour": timedelta(days=62), "day": timedelta(days=3 * 366), "month": timedelta(days=20 * 366)}


@dataclass(frozen=True)
class Range:
    """[start, end), and the zone in which days and hours are counted."""

    start: datetime
    end: datetime
    zone: ZoneInfo

    def local_text(self, at: datetime) -> str:
        return at.astimezone(self.zone).isoformat()

    def step_text(self, at: datetime, first: datetime, step: str) -> str:
        """The start of a month, day or hour. An hour keeps the offset that was in force when it was seen: where clocks
        change by half an hour, its start had another."""
        if step != "hour":
            return self.local_text(at)
        local = first.astimezone(self.zone)
        offset = local.utcoffset()
        assert offset is not None
        return local.replace(minute=0, second=0, microsecond=0, tzinfo=timezone(offset)).isoformat()


def read_range(request: Request) -> Range:
    """`from`, `to` (ISO 8601; without an offset, in `tz`) and `tz` of the query; this month in UTC unless told."""
    zone = _zone(request.GET.get("tz", "UTC"))
    now = now_utc()
    month = now.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    start, end = _instant(request, "from", zone) or month, _instant(request, "to", zone) or now
    if start >= end:
        raise InvalidRequest(
            f"from is {start.isoformat()} and to is {end.isoformat()}: `from` must come before `to`", param="from"
        )
    return Range(start, end, zone)


def check_steps(span: Range, step: str) -> None:
    """An answer has a bounded number of rows."""
    days, most = (span.end - span.start).days, MAX_STEPS[step].days
    if span.end - span.start > MAX_STEPS[step]:
        raise InvalidRequest(
            f"from and to are {days} days apart: by {step}, ask for at most {most}",
            param="from",
        )


def choice(request: Request, name: str, allowed: tuple[str, ...]) -> str:
    """One of a few words; the first is the default."""
    found = request.GET.get(name, allowed[0])
    if found not in allowed:
        raise InvalidRequest(f"{name} is {found[:50]!r}: use one of {', '.join(allowed)}", param=name)
    return found


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequest(f"tz is {name[:50]!r}: use an IANA name such as Europe/Paris", param="tz") from None


def _instant(request: Request, name: str, zone: ZoneInfo) -> datetime | None:
    raw = request.GET.get(name)
    if not raw:
        return None
    try:
        # A "+" that was not escaped in the query arrives as a blank.
        found = datetime.fromisoformat(raw.replace(" ", "+") if "T" in raw else raw)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{name} is {raw[:50]!r}: use ISO 8601, such as 2026-01-31T00:00:00Z", param=name
        ) from None
