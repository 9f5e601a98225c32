"""The month's requests before anybody serves them: the same for the same seed, and of the shapes the cast tells."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.embedded.month.cast import COMPANIES, LEXICON, NORTHWIND, PIXELPOST
from controlplane.embedded.month.door import by_month
from controlplane.embedded.month.telling import story_days
from controlplane.embedded.month.traffic import Asked, Days, traffic_of

NOW = datetime(2026, 3, 18, 15, 40, tzinfo=UTC)
DAYS = story_days(3, NOW, days=None, scale=0.3)
instants = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
few = settings(max_examples=25)  # each is two months long


def month(days: Days = DAYS) -> list[Asked]:
    return [asked for company in COMPANIES for asked in traffic_of(company, days)]


def test_the_story_begins_with_the_first_of_last_month() -> None:
    assert DAYS.start == datetime(2026, 2, 1, tzinfo=UTC)
    assert story_days(1, NOW, days=3, scale=1).start == datetime(2026, 3, 15, tzinfo=UTC)


def test_the_same_seed_asks_the_same_and_another_does_not() -> None:
    assert month() == month()
    assert month() != month(replace(DAYS, seed=4))


def test_an_hour_later_the_same_requests_have_been_asked_before() -> None:
    """But for those of the last hour, which there always are."""
    recent = NOW - timedelta(hours=2)
    later = {asked for asked in month(replace(DAYS, now=NOW + timedelta(hours=1))) if asked.started_at < recent}
    assert later == {asked for asked in month() if asked.started_at < recent}


@few
@given(now=instants, seed=st.integers(0, 9))
def test_whatever_the_day_every_request_could_have_been(now: datetime, seed: int) -> None:
    days = story_days(seed, now, days=None, scale=0.02)
    for company in COMPANIES:
        asked = traffic_of(company, days)
        for each in asked:
            usage = each.usage
            assert days.start <= each.started_at <= (each.first_at or each.started_at) <= each.finished_at < now
            assert 0 <= usage.cached_tokens < usage.prompt_tokens
            assert 1 <= usage.completion_tokens <= each.most_tokens
            assert 0 < usage.prefill_ns < usage.device_ns


@few
@given(now=instants)
def test_months_are_told_once_each_and_today_last(now: datetime) -> None:
    asked = traffic_of(NORTHWIND, story_days(1, now, days=None, scale=0.05))
    parts = list(by_month(asked, now))
    assert sorted((each for _, part in parts for each in part), key=lambda each: each.finished_at) == asked
    assert [start for start, _ in parts][:-1] == sorted(start for start, _ in parts[:-1])
    assert parts[-1][0] is None
    for start, part in parts[:-1]:
        assert {(each.started_at.year, each.started_at.month) for each in part} == {(start.year, start.month)}


def test_each_company_has_a_shape_of_its_own() -> None:
    chatty, long_prompts = traffic_of(NORTHWIND, DAYS), traffic_of(LEXICON, DAYS)
    assert median(a.usage.prompt_tokens for a in long_prompts) > 4 * median(a.usage.prompt_tokens for a in chatty)
    assert len(chatty) > 2 * len(long_prompts)

    def prefill(asked: list[Asked]) -> float:
        return sum(a.usage.prefill_ns for a in asked) / sum(a.usage.device_ns for a in asked)

    def hits(asked: list[Asked]) -> float:
        return sum(a.usage.cached_tokens for a in asked) / sum(a.usage.prompt_tokens for a in asked)

    assert prefill(long_prompts) > 2 * prefill(chatty)
    assert hits(chatty) > 2 * hits(long_prompts)


def test_weekends_are_quiet_and_so_are_nights() -> None:
    asked = [each for each in month() if each.started_at < NOW - timedelta(hours=2)]
    weekend = sum(each.started_at.weekday() >= 5 for each in asked)
    assert 0 < weekend < len(asked) / 5
    assert all(6 <= each.started_at.hour < 22 for each in asked)


def test_yesterdays_spike_has_one_reason() -> None:
    yesterday = (NOW - timedelta(days=1)).date()
    by_day = Counter(each.started_at.date() for each in traffic_of(PIXELPOST, DAYS) if each.key == "newsletter")
    assert by_day[yesterday] > 3 * sorted(by_day.values())[-2]
    others = Counter(each.started_at.date() for each in traffic_of(PIXELPOST, DAYS) if each.key != "newsletter")
    assert others[yesterday] < 3 * median(others.values())


def test_the_canary_serves_a_part_of_the_last_two_days() -> None:
    new = [each for each in traffic_of(NORTHWIND, DAYS) if each.number == 2]
    assert new
    assert {each.model for each in new} == {"support-bot"}
    assert min(each.started_at.date() for each in new) == (NOW - timedelta(days=2)).date()
    last_hour = [e for e in traffic_of(NORTHWIND, DAYS) if e.finished_at > NOW - timedelta(hours=1)]
    assert len(last_hour) >= 8


@pytest.mark.parametrize("reason", ["stop", "length", "cancelled", "engine_restart"])
def test_answers_end_in_every_way(reason: str) -> None:
    assert sum(each.finish_reason == reason for each in month(replace(DAYS, scale=1.0))) > 5
