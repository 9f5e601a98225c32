"""Usage taken apart: whatever is asked for, the sums, the parts, the single generations and the file say the same."""

import csv
import io
import json
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest

from controlplane.billing.prices import Rates, set_price
from controlplane.billing.services import record_usage
from tenants.key_services import issue_key
from tenants.models import ApiKey, Role
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in
from tests.controlplane.money import AT, BASE, Customer, D, customer_named

MILLION = D(10**6)
RATES = Rates(
    input=D("0.150001"), cached_input=D("0.05"), output=D("0.6"), adapter_surcharge=D("0.030007"), batch_discount=33
)
FINISHES = ["stop", "length", "cancelled", "error:engine_failed", "engine_restart"]
MEMBERS = [Role.OWNER, Role.DEVELOPER, None]


@dataclass(frozen=True)
class Used:
    """What was booked, as arguments of `record_usage`, and each event's key."""

    events: list[dict[str, Any]]
    keys: dict[str, ApiKey]


def _event(customer: Customer, keys: list[ApiKey], random: random.Random, n: int) -> dict[str, Any]:
    number = random.choice([None, 1, 2])
    name = random.choice(["pirate", "poet"])
    adapter = {"adapter_id": f"adp_{name}", "adapter_version_id": f"adv_{number}", "model": f"{name}@{number}"}
    prompt, at = random.randrange(1, 5000), AT + timedelta(minutes=random.randrange(3 * 24 * 60))
    started = at - timedelta(milliseconds=random.randrange(500, 5000))
    first = random.choice([None, started + timedelta(milliseconds=random.randrange(1, 500))])
    return customer.usage(
        f"req_{n}", **(adapter if number else {}), key_id=random.choice(keys).id, prompt_tokens=prompt,
        cached_tokens=random.randrange(prompt + 1), completion_tokens=random.randrange(900),
        device_ns=random.randrange(10**10), finish_reason=random.choice(FINISHES), started_at=started,
        finished_at=at, first_at=first, is_batch=random.random() < 0.3,
    )  # fmt: skip


@pytest.fixture
def used(cast: Cast) -> Used:
    """Sixty random requests of Acme by three keys, one of the playground's; and a stranger's."""
    price = set_price(base_model=BASE, rates=RATES, actor="usr")
    people = [cast.people[role] if role else None for role in MEMBERS]
    keys = [
        issue_key(tenant=cast.acme, name=f"key {n}", scopes=("inference",), actor=person, hidden=n == 1)[0]
        for n, person in enumerate(people)
    ]
    customer, dice = Customer(cast.acme, keys[0], price), random.Random(7)
    events = [_event(customer, keys, dice, n) for n in range(60)]
    for event in events:
        run_sync(record_usage(**event))
    globex = customer_named("initech")
    run_sync(record_usage(**globex.usage("req_foreign")))
    return Used(events, {key.id: key for key in keys})


def _rate(name: str, event: dict[str, Any], *, surcharge: bool = True) -> Decimal:
    plain: Decimal = getattr(RATES, name)
    more = RATES.adapter_surcharge if surcharge and event["adapter_id"] else D(0)
    left = 100 - RATES.batch_discount if event["is_batch"] else 100
    return ((plain + more) * left / 100).quantize(D("0.000001"), rounding="ROUND_DOWN")


def _parts(events: list[dict[str, Any]]) -> dict[str, Decimal]:
    """The naive sum, event by event."""
    found = dict.fromkeys(("input", "cached_input", "output", "amount", "cache_savings"), D(0))
    for event in events:
        cached, completion = event["cached_tokens"], event["completion_tokens"]
        fresh = event["prompt_tokens"] - cached
        for name, tokens in (("input", fresh), ("cached_input", cached), ("output", completion)):
            found[name] += tokens * _rate(name, event, surcharge=False) / MILLION
            found["amount"] += tokens * _rate(name, event) / MILLION
        found["cache_savings"] += cached * (_rate("input", event) - _rate("cached_input", event)) / MILLION
    surcharge = found["amount"] - found["input"] - found["cached_input"] - found["output"]
    return {**found, "surcharge": surcharge, "markup": D(0)}


def _group(used: Used, event: dict[str, Any], split: str) -> str:
    key = used.keys[event["key_id"]]
    match split:
        case "adapter":
            return str(event["adapter_id"] or event["base_model"])
        case "key":
            return "playground" if key.hidden else key.id
        case "member":
            return key.created_by_id or "nobody"
        case _:
            return str(event["model"])


def _query(path: str, asked: dict[str, str]) -> str:
    return f"{path}?{urlencode(asked)}"


def _asks(used: Used) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Random spans and filters, each with the events that it means."""
    dice = random.Random(11)
    for _ in range(12):
        start = AT + timedelta(minutes=dice.randrange(2 * 24 * 60))
        end = start + timedelta(minutes=dice.randrange(60, 2 * 24 * 60))
        asked = {"from": start.isoformat(), "to": end.isoformat()}
        meant = [event for event in used.events if start <= event["finished_at"] < end]
        for split in dice.sample(["adapter", "key", "member", "model"], dice.randrange(3)):
            group = _group(used, dice.choice(used.events), split)
            asked[split] = group
            meant = [event for event in meant if _group(used, event, split) == group]
        yield asked, meant


def _all(api: Api, asked: dict[str, str]) -> list[dict[str, Any]]:
    """Page by page, five at a time."""
    rows: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        body = api.get(_query("usage/generations", asked | {"limit": "5"} | cursor))[1]
        rows += body["data"]
        if not body["next"]:
            return rows
        cursor = {"cursor": body["next"]}


def test_sums_parts_and_generations_of_any_filter_are_the_same_to_the_last_digit(used: Used, owner: Api) -> None:
    for asked, meant in _asks(used):
        expected = _parts(meant)
        total = owner.get(_query("usage", asked | {"group_by": "model"}))[1]["total"]
        parts = owner.get(_query("usage/composition", asked))[1]
        rows = _all(owner, asked)
        assert {name: D(parts[name]) for name in expected} == expected
        assert D(total["amount"]) == expected["amount"] == sum((D(row["amount"]) for row in rows), D(0))
        assert [row["id"] for row in rows] == _newest_first(meant)
        assert total["requests"] == len(meant)


def _newest_first(events: list[dict[str, Any]]) -> list[str]:
    numbered = list(enumerate(events))
    ordered = sorted(numbered, key=lambda pair: (pair[1]["finished_at"], pair[0]), reverse=True)
    return [event["request_id"] for _, event in ordered]


@pytest.mark.parametrize("split", ["adapter", "key", "member", "model"])
def test_each_group_alone_is_what_it_is_among_the_others(used: Used, owner: Api, split: str) -> None:
    span = {"from": AT.isoformat(), "to": (AT + timedelta(days=9)).isoformat()}
    body = owner.get(_query("usage", span | {"group_by": split}))[1]
    assert {row["group"] for row in body["data"]} == {_group(used, event, split) for event in used.events}
    for row in body["data"]:
        alone = owner.get(_query("usage", span | {"group_by": split, split: row["group"]}))[1]
        assert alone["data"] == [row]
        series = owner.get(_query("usage/timeseries", span | {"step": "day", "split": split, split: row["group"]}))[1]
        assert sum((D(point["amount"]) for point in series["data"]), D(0)) == D(row["amount"])


def test_months_are_those_of_the_zone(used: Used, owner: Api) -> None:
    span = {"from": "2026-01-01", "to": "2027-01-01", "tz": "Asia/Kolkata", "group_by": "month"}
    body = owner.get(_query("usage", span))[1]
    [row] = body["data"]
    assert (row["group"], row["label"], row["requests"]) == ("2026-05-01T00:00:00+05:30", "2026-05", 60)


def test_one_generation_says_how_its_amount_comes_about(used: Used, owner: Api, stranger: Api) -> None:
    event = next(event for event in used.events if event["adapter_id"] and event["is_batch"] and event["first_at"])
    status, body = owner.get(f"usage/generations/{event['request_id']}")
    expected = _parts([event])
    assert status == 200
    assert {name: D(body["parts"][name]) for name in expected} == expected
    assert body["rates"]["input"] == f"{_rate('input', event).normalize():f}"
    assert body["first_token_ms"] == (event["first_at"] - event["started_at"]).total_seconds() * 1000
    assert stranger.get(f"usage/generations/{event['request_id']}")[0] == 404
    assert owner.get("usage/generations/req_foreign")[0] == 404


def test_outcomes_part_the_generations(used: Used, owner: Api) -> None:
    span = {"from": AT.isoformat(), "to": (AT + timedelta(days=9)).isoformat()}
    found = {name: _all(owner, span | {"outcome": name}) for name in ("completed", "cancelled", "failed")}
    assert {row["finish_reason"] for row in found["failed"]} == {"error:engine_failed", "engine_restart"}
    assert sum(len(rows) for rows in found.values()) == len(used.events)
    assert owner.get(_query("usage/generations", {"outcome": "odd"}))[1]["error"]["param"] == "outcome"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_file_has_the_very_same_rows(used: Used, owner: Api, kind: str) -> None:
    span = {"from": AT.isoformat(), "to": (AT + timedelta(days=9)).isoformat()}
    response = owner.raw("GET", _query("usage/generations/export", span | {"as": kind}))
    text = b"".join(response.streaming_content).decode()
    rows = (
        list(csv.DictReader(io.StringIO(text))) if kind == "csv" else [json.loads(line) for line in text.splitlines()]
    )
    listed = _all(owner, span)[::-1]
    assert [row["id"] for row in rows] == [row["id"] for row in listed]
    assert [row["amount"] for row in rows] == [row["amount"] for row in listed]
    assert response["Content-Disposition"] == f'attachment; filename="generations.{kind}"'


def test_quantiles_are_those_of_the_answers_that_tell(used: Used, owner: Api) -> None:
    span = {"from": AT.isoformat(), "to": (AT + timedelta(days=9)).isoformat()}
    body = owner.get(_query("usage/latency", span))[1]
    told = [event for event in used.events if event["first_at"]]
    waits = [(event["first_at"] - event["started_at"]).total_seconds() * 1000 for event in told]
    assert body["answers"] == len(told)
    assert body["ttft_ms"]["p50"] == pytest.approx(statistics.median(waits), abs=0.001)
    gaps = [
        (event["finished_at"] - event["first_at"]).total_seconds() * 1000 / (event["completion_tokens"] - 1)
        for event in told
        if event["completion_tokens"] > 1
    ]
    at_95 = statistics.quantiles(gaps, n=100, method="inclusive")[94]
    assert body["itl_ms"]["p95"] == pytest.approx(at_95, abs=0.001)


def test_nothing_used_has_no_quantiles(cast: Cast, owner: Api) -> None:
    body = owner.get("usage/latency")[1]
    assert (body["answers"], body["ttft_ms"], body["itl_ms"]) == (0, None, None)


@pytest.mark.parametrize(
    "path", ["usage?group_by=member", "usage/timeseries?split=member", "usage/generations?member=x", "usage?member=x"]
)
def test_who_used_what_is_shown_to_those_who_may_see_the_members(used: Used, cast: Cast, path: str) -> None:
    found = {role for role, person in cast.people.items() if signed_in(person).get(path)[0] == 200}
    assert found == {"owner", "admin"}


def test_a_generation_names_its_member_to_those_alone(used: Used, cast: Cast) -> None:
    span = {"from": AT.isoformat(), "to": (AT + timedelta(days=9)).isoformat()}
    told = {row["member"] for row in _all(signed_in(cast.people["admin"]), span)}
    assert told == {"owner@acme.example", "developer@acme.example", None}
    assert {row["member"] for row in _all(signed_in(cast.people["viewer"]), span)} == {None}
