"""Rate limits let through exactly their number, and Retry-After tells the truth."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from controlplane.errors import RateLimited
from controlplane.quotas.models import Hold
from controlplane.quotas.rates import duration_text
from controlplane.quotas.services import release_hold, renew_holds
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D, another_key, everything, settle_hold, side_by_side

threads = pytest.mark.django_db(transaction=True)


def _shift(seconds: float) -> None:
    """As if so many seconds had passed for every bucket (less than none: the bucket stays as it is till then)."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE quotas_quota SET credited_at = credited_at - %s * interval '1 second'", [seconds])


def _refusal(acme: Customer, **more: Any) -> RateLimited:
    with pytest.raises(RateLimited) as refused:
        run_sync(acme.reserve("req_refused", **more))
    return refused.value


@threads
@pytest.mark.parametrize("level", ["tenant", "key"])
def test_fifty_threads_and_a_limit_of_ten(acme: Customer, level: str) -> None:
    acme.limit({"requests_per_minute": 10}, key=acme.key if level == "key" else None)
    run_sync(acme.reserve("req_first"))
    run_sync(release_hold(request_id="req_first"))
    _shift(-59)  # a slow machine must not earn credit while it runs this
    jobs = [lambda n=n: run_sync(acme.reserve(f"req_{n}")) and "held" for n in range(50)]
    assert side_by_side(jobs) == {"held": 9, "RateLimited": 41}


@pytest.mark.parametrize(
    "limits, tokens, taken",
    [
        ({"requests_per_minute": 7}, 1, 7),
        ({"requests_per_minute": 90}, 1, 90),
        ({"tokens_per_minute": 100}, 33, 3),
        ({"tokens_per_minute": 70, "requests_per_minute": 3}, 30, 2),
    ],
)
def test_coming_back_when_told_passes_and_a_second_earlier_does_not(
    acme: Customer, limits: Any, tokens: int, taken: int
) -> None:
    acme.limit(limits)
    for n in range(taken):
        run_sync(acme.reserve(f"req_{n}", tokens=tokens))
    error = _refusal(acme, tokens=tokens)
    seconds, ms = int(error.headers["Retry-After"]), int(error.headers["retry-after-ms"])
    assert error.status == 429
    assert seconds >= 1
    assert (seconds - 1) * 1000 < ms <= seconds * 1000
    _shift((ms - 2) / 1000)  # the database's clock stands still within a test's transaction
    _refusal(acme, tokens=tokens)
    _shift(0.002)
    run_sync(acme.reserve("req_later", tokens=tokens))


def test_retry_after_counts_every_level(acme: Customer) -> None:
    """The tenant has room again in 1 s, the key only in 30."""
    acme.limit({"requests_per_minute": 60})
    acme.limit({"requests_per_minute": 2}, key=acme.key)
    other = another_key(acme)
    for n in range(2):
        run_sync(acme.reserve(f"req_{n}"))
    for n in range(58):
        run_sync(acme.reserve(f"req_other{n}", key_id=other.id))
    assert _refusal(acme, key_id=other.id).headers["Retry-After"] == "1"
    assert _refusal(acme).headers["Retry-After"] == "30"
    _shift(29)
    assert _refusal(acme).headers["Retry-After"] == "1"
    _shift(1)
    run_sync(acme.reserve("req_later"))


def test_a_stream_of_80_tokens_twice_on_100_a_minute(acme: Customer) -> None:
    acme.limit({"tokens_per_minute": 100})
    run_sync(acme.reserve("req_1", tokens=80))
    assert "100 tokens a minute" in _refusal(acme, tokens=80).message


def test_unused_tokens_come_back_with_the_settlement(acme: Customer) -> None:
    acme.limit({"tokens_per_minute": 100})
    run_sync(acme.reserve("req_1", tokens=90))
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=20))
    run_sync(acme.reserve("req_2", tokens=80))
    run_sync(release_hold(request_id="req_2"))
    run_sync(acme.reserve("req_3", tokens=80))
    _refusal(acme, tokens=1)


def test_tokens_never_come_back_over_the_limit(acme: Customer) -> None:
    acme.limit({"tokens_per_minute": 100})
    run_sync(acme.reserve("req_1", tokens=60))
    _shift(60)
    run_sync(acme.reserve("req_2", tokens=0))
    run_sync(release_hold(request_id="req_1"))
    run_sync(acme.reserve("req_3", tokens=100))
    _refusal(acme, tokens=1)


def test_more_tokens_than_a_minute_has_are_refused_without_a_promise(acme: Customer) -> None:
    acme.limit({"tokens_per_minute": 100}, key=acme.key)
    error = _refusal(acme, tokens=101)
    assert (error.code, error.param) == ("tokens_per_minute_exceeded", "max_tokens")
    assert error.headers["x-should-retry"] == "false"
    assert "Retry-After" not in error.headers
    assert "101 tokens" in error.message


def test_headers_show_the_tightest_level_and_whose_it_is(acme: Customer) -> None:
    acme.limit({"requests_per_minute": 100, "tokens_per_minute": 50})
    acme.limit({"requests_per_minute": 3}, key=acme.key)
    limits = run_sync(acme.reserve("req_1", tokens=20))
    assert limits.headers() == {
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-remaining-requests": "2",
        "x-ratelimit-reset-requests": "20s",
        "x-ratelimit-level-requests": "key",
        "x-ratelimit-limit-tokens": "50",
        "x-ratelimit-remaining-tokens": "30",
        "x-ratelimit-reset-tokens": "24s",
        "x-ratelimit-level-tokens": "tenant",
    }
    run_sync(acme.reserve("req_2", tokens=20))
    run_sync(acme.reserve("req_3", tokens=1))
    headers = _refusal(acme, tokens=1).headers
    assert (headers["x-ratelimit-remaining-requests"], headers["x-ratelimit-reset-requests"]) == ("0", "1m0s")
    assert run_sync(another_customer_reserve(acme)).headers() != headers


def another_customer_reserve(acme: Customer) -> Any:
    return acme.reserve("req_other", key_id=another_key(acme).id, tokens=1)


def test_without_limits_there_are_no_headers(acme: Customer) -> None:
    assert run_sync(acme.reserve("req_1")).headers() == {}


@pytest.mark.parametrize(
    "seconds, text",
    [("0", "0ms"), ("0.0001", "1ms"), ("0.012", "12ms"), ("1.5", "1.5s"), ("59.9999", "1m0s"), ("360", "6m0s")],
)
def test_durations_read_as_openai_writes_them(seconds: str, text: str) -> None:
    assert duration_text(D(seconds)) == text


@given(st.decimals(0, 10**5, places=6))
def test_durations_never_promise_too_early(seconds: D) -> None:
    text = duration_text(seconds)
    minutes, _, rest = text.rpartition("m") if text.endswith("s") and not text.endswith("ms") else ("", "", text)
    shown = D(rest[:-2]) / 1000 if rest.endswith("ms") else D(rest[:-1])
    shown += 60 * int(minutes or 0)
    assert seconds <= shown < seconds + D("0.001")


# --- concurrency ---------------------------------------------------------------------------------------------------


@threads
@pytest.mark.parametrize("level", ["tenant", "key"])
def test_twenty_threads_and_room_for_three(acme: Customer, level: str) -> None:
    acme.limit({"concurrency": 3}, key=acme.key if level == "key" else None)
    jobs = [lambda n=n: run_sync(acme.reserve(f"req_{n}")) and "held" for n in range(20)]
    assert side_by_side(jobs) == {"held": 3, "RateLimited": 17}


def test_a_slot_is_a_lease(acme: Customer) -> None:
    acme.limit({"concurrency": 2})
    for n in range(2):
        run_sync(acme.reserve(f"req_{n}"))
    error = _refusal(acme)
    assert (error.code, error.headers["Retry-After"]) == ("concurrency_limit_exceeded", "1")
    everything(Hold).filter(request_id="req_0").update(expires_at=timezone.now() - timedelta(seconds=1))
    run_sync(acme.reserve("req_2"))  # nobody has swept: a lease that is over counts no more
    _refusal(acme)
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=1))
    run_sync(acme.reserve("req_3"))


def test_a_renewed_lease_counts_on(acme: Customer) -> None:
    acme.limit({"concurrency": 1}, key=acme.key)
    run_sync(acme.reserve("req_1"))
    everything(Hold).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert run_sync(renew_holds(request_ids=["req_1", "req_missing"], ttl_seconds=60)) == 1
    _refusal(acme)
    run_sync(acme.reserve("req_2", key_id=another_key(acme).id))
