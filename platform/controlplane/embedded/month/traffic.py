"""What the companies' programs ask, instant by instant: pure, and the same for the same seed and day.

Every day is drawn from the seed and its date alone, so that a later hour of the same day adds to what was there and
changes none of it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Final

from controlplane.embedded.month.cast import Company, Stream, Upload
from engine.protocol import Usage

OPENS, CLOSES = 6, 22  # hours (UTC) between which the device is switched on; most work is far from both
_BUSY_HOURS: Final = 2.6  # how widely a stream spreads around its peak
_PREFILL_NS: Final = 900_000  # of the device, for one token that is not cached
_DECODE_NS: Final = 23_000_000  # a token's share of a step that others are in, too
_BETWEEN_MS: Final = 34.0
_LONGEST_PROMPT: Final = 7400
CANARY_PERCENT: Final = 20
_SETTLED_BY_JOURNAL: Final = 0.01


def month_of(at: datetime) -> datetime:
    """The start of its calendar month; at: in UTC."""
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True)
class Asked:
    """One request as it ended. number: of the version that the name led to; None for the base model. first_at: None
    where the door that served it died, so that the journal alone tells of it."""

    company: str
    key: str
    model: str
    number: int | None
    started_at: datetime
    first_at: datetime | None
    finished_at: datetime
    finish_reason: str
    usage: Usage
    most_tokens: int


@dataclass(frozen=True)
class Days:
    """[first day, now]. scale: times the requests that the cast tells of."""

    seed: int
    start: datetime
    now: datetime
    scale: float = 1.0

    def dates(self) -> Iterator[date]:
        day = self.start.date()
        while day <= self.now.date():
            yield day
            day += timedelta(days=1)


def traffic_of(company: Company, days: Days) -> list[Asked]:
    """In the order in which they ended; none runs through midnight (UTC), so that each belongs to one day."""
    found = [asked for day in days.dates() for asked in _of_day(company, day, days)]
    found += _of_last_hour(company, days)
    ended = sorted((each for each in found if each.finished_at < days.now), key=lambda each: each.finished_at)
    return [each for each in ended if each.started_at.date() == each.finished_at.date()]


def _of_day(company: Company, day: date, days: Days) -> Iterator[Asked]:
    random = Random(f"{days.seed}:{company.slug}:{day.isoformat()}")
    for stream in company.streams:
        for _ in range(_how_many(random, stream, day, days)):
            yield _asked(random, company, stream, _instant(random, stream, day, days), 1.0, days)
    spike = company.spike
    if spike and day == days.now.date() - timedelta(days=1):
        for _ in range(max(1, round(spike.requests * days.scale))):
            at = _at(day, days) + timedelta(hours=12, seconds=random.uniform(0, 9000))
            yield _asked(random, company, spike.stream, at, spike.longer, days)


def _of_last_hour(company: Company, days: Days) -> Iterator[Asked]:
    """Whatever the hour at which the story is told: a page that looks at the last hour has something to show."""
    random = Random(f"{days.seed}:{company.slug}:last hour")
    stream = company.streams[0]
    for _ in range(max(8, round(24 * days.scale))):
        yield _asked(random, company, stream, days.now - timedelta(seconds=random.uniform(90, 3500)), 1.0, days)


def _how_many(random: Random, stream: Stream, day: date, days: Days) -> int:
    """Rounded by chance, so that a small scale keeps each stream's share."""
    mean = stream.a_day * days.scale * (stream.weekend if day.weekday() >= 5 else 1.0)
    wanted = max(0.0, random.gauss(mean, 0.12 * mean))
    return math.floor(wanted) + (random.random() < wanted % 1)


def _at(day: date, days: Days) -> datetime:
    return datetime.combine(day, time(), days.now.tzinfo)


def _instant(random: Random, stream: Stream, day: date, days: Days) -> datetime:
    hour = random.gauss(stream.peak, _BUSY_HOURS)
    while not OPENS <= hour < CLOSES - 0.1:
        hour = random.gauss(stream.peak, _BUSY_HOURS)
    return _at(day, days) + timedelta(hours=hour)


def _asked(
    random: Random, company: Company, stream: Stream, at: datetime, longer: float, days: Days
) -> Asked:  # fmt: skip
    prompt = min(_LONGEST_PROMPT, max(12, round(random.lognormvariate(math.log(stream.prompt), 0.35))))
    cached = min(prompt - 1, round(prompt * min(0.95, max(0.0, random.gauss(stream.cached, 0.18)))) // 16 * 16)
    most = max(16, round(stream.completion * longer * 2.2) // 16 * 16)
    completion = min(most, max(1, round(random.lognormvariate(math.log(stream.completion * longer), 0.45))))
    number = _version(random, company, stream, at, days)
    reason, completion = _end(random, completion, most, is_new=number == 2)
    prefill = round((prompt - cached) * _PREFILL_NS * random.uniform(0.9, 1.15))
    usage = Usage(
        prompt, cached, completion, prefill + round(completion * _DECODE_NS * random.uniform(0.85, 1.2)), prefill
    )
    first = at + timedelta(milliseconds=18 + prefill / 1e6 + random.lognormvariate(math.log(24), 0.8))
    between = _BETWEEN_MS * random.lognormvariate(0.0, 0.16) * (1.12 if number == 2 else 1.0)
    finished = first + timedelta(milliseconds=between * (completion - 1))
    is_lost = random.random() < _SETTLED_BY_JOURNAL
    return Asked(
        company.slug, stream.key, stream.model, number, at, None if is_lost or not completion else first, finished,
        reason, usage, most,
    )  # fmt: skip


def _version(random: Random, company: Company, stream: Stream, at: datetime, days: Days) -> int | None:
    """A second version that was not refused takes a part of the traffic from the day on which it came."""
    if not stream.model:
        return None
    newer = [up for up in company.uploads if up.adapter == stream.model and up.days_ago is not None and not up.claims]
    chance = random.random() * 100
    is_new = bool(newer) and at >= came_at(newer[0], days) and chance < CANARY_PERCENT
    return 2 if is_new else 1


def came_at(upload: Upload, days: Days) -> datetime:
    """In the morning, if that is over."""
    if upload.days_ago is None:
        return days.start + timedelta(hours=8)
    day = days.now.date() - timedelta(days=upload.days_ago)
    return min(_at(day, days) + timedelta(hours=8), days.now - timedelta(hours=1))


def _end(random: Random, completion: int, most: int, *, is_new: bool) -> tuple[str, int]:
    """Why it ended, and after how many tokens. The new version is one that its engine likes less."""
    chance = random.random()
    if chance < (0.05 if is_new else 0.004):
        return "engine_restart", max(1, round(completion * random.random()))
    if chance < (0.05 if is_new else 0.004) + 0.035:
        return "cancelled", max(1, round(completion * random.random()))
    return ("length" if completion == most else "stop"), completion
