"""Operators see which part is away, in words that hold no secret."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from controlplane.console import health, workers
from controlplane.job_log import LAST, JobLog
from tests.controlplane.conftest import Api
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.web import Web


@pytest.fixture
def all_well(engine: FakeEngine, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A door that answers, a worker, a schedule that ran just now, and a folder for objects."""
    settings.OBJECTS_DIR = tmp_path
    monkeypatch.setattr(health, "SECONDS", 0.5)
    monkeypatch.setattr(health, "workers_online", lambda seconds: ["celery@here"])
    JobLog(settings.VALKEY_URL).note_end("inference.ingest_journal", seconds=0.01, state="success", error=None)
    with Web() as web, redis.Redis.from_url(settings.VALKEY_URL) as client:  # some tests change the setting
        web.files["/health"] = b"{}"
        settings.DOOR_URL = web.url("", host="127.0.0.1")
        yield
        client.delete(LAST)


def states(operator: Api) -> dict[str, str]:
    status, body = operator.get("operator/health")
    assert status == 200
    assert all(part["detail"] for part in body["parts"])
    return {part["name"]: part["state"] for part in body["parts"]}


def test_all_is_well(operator: Api, all_well: None) -> None:
    assert states(operator) == dict.fromkeys(
        ("PostgreSQL", "Engine", "Door", "Workers", "Schedule", "Valkey", "Object store"), "up"
    )


def test_each_part_that_is_away_is_told_alone(
    operator: Api, all_well: None, engine: FakeEngine, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = states(operator)
    engine.is_draining = True
    assert states(operator) == {**well, "Engine": "degraded"}
    engine.kill()
    assert states(operator) == {**well, "Engine": "down"}
    engine.start()
    settings.OBJECTS_DIR = tmp_path / "nowhere"
    assert states(operator) == {**well, "Object store": "down"}
    settings.OBJECTS_DIR = tmp_path
    monkeypatch.setattr(health, "LEAST_FREE_BYTES", 2**60)
    assert states(operator) == {**well, "Object store": "degraded"}
    monkeypatch.undo()
    monkeypatch.setattr(health, "workers_online", lambda seconds: [])
    settings.DOOR_URL = "http://127.0.0.1:9"
    assert states(operator) == {**well, "Workers": "down", "Door": "down"}


def test_a_schedule_that_stands_still_is_seen(operator: Api, all_well: None, settings: Any) -> None:
    entry = {"at": (datetime.now(UTC) - timedelta(minutes=5)).isoformat(), "seconds": 1, "state": "success"}
    with redis.Redis.from_url(settings.VALKEY_URL) as client:
        client.hset(LAST, "inference.ingest_journal", json.dumps(entry))
        assert states(operator)["Schedule"] == "down"
        client.delete(LAST)
        assert states(operator)["Schedule"] == "down"


def test_a_store_that_is_away_shows_no_password(
    operator: Api, all_well: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VALKEY_URL = "redis://:hunter2@127.0.0.1:9/0"
    monkeypatch.undo()
    monkeypatch.setattr(workers.app.control, "ping", lambda timeout: (_ for _ in ()).throw(OSError("hunter2")))
    status, body = operator.get("operator/health")
    assert status == 200
    found = {part["name"]: part["state"] for part in body["parts"]}
    assert (found["Valkey"], found["Schedule"], found["Workers"]) == ("down", "down", "down")
    assert "hunter2" not in json.dumps(body)
