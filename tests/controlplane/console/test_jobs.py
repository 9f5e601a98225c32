"""Background work as operators see it, and the record that workers keep of it."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import Celery

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.states import State
from controlplane.console import jobs
from controlplane.job_log import FAILURES, LAST, MOST_FAILURES, RUNS, JobLog, JobWatch
from tests.controlplane.conftest import Api, Cast


@pytest.fixture
def log(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobLog]:
    monkeypatch.setattr(jobs, "running_tasks", lambda seconds: [{"worker": "w1", "name": "a.task", "since": 1e9}])
    with redis.Redis.from_url(settings.VALKEY_URL) as client:  # some tests change the setting
        client.delete(LAST, RUNS, FAILURES, "imports")
        yield JobLog(settings.VALKEY_URL)
        client.delete(LAST, RUNS, FAILURES, "imports")


def test_what_is_due_what_ran_and_what_failed(operator: Api, log: JobLog, settings: Any) -> None:
    log.note_end("inference.ingest_journal", seconds=0.25, state="success", error=None)
    log.note_end("inference.ingest_journal", seconds=0.5, state="failure", error="OperationalError")
    log.note_end("adapters.check_version", seconds=2, state="success", error=None)
    with redis.Redis.from_url(settings.VALKEY_URL) as client:
        client.lpush("imports", "a", "b")
    status, body = operator.get("operator/jobs")
    assert status == 200
    tasks = {task["name"]: task for task in body["tasks"]}
    assert set(tasks) >= {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    ingest = tasks["inference.ingest_journal"]
    assert (ingest["every_seconds"], ingest["seconds"], ingest["state"], ingest["error"]) == (
        2.0,
        0.5,
        "failure",
        "OperationalError",
    )
    assert (ingest["succeeded"], ingest["failed"], ingest["retried"]) == (1, 1, 0)
    assert (tasks["adapters.check_version"]["every_seconds"], tasks["adapters.check_version"]["succeeded"]) == (None, 1)
    assert tasks["billing.close_periods"]["at"] is None
    assert {queue["name"]: queue["waiting"] for queue in body["queues"]}["imports"] == 2
    assert [(task["name"], task["worker"]) for task in body["running"]] == [("a.task", "w1")]
    assert [(failure["name"], failure["error"]) for failure in body["failures"]] == [
        ("inference.ingest_journal", "OperationalError")
    ]


def test_a_record_that_is_away_is_told(operator: Api, log: JobLog, settings: Any) -> None:
    settings.VALKEY_URL = "redis://:hunter2@127.0.0.1:9/0"
    status, body = operator.get("operator/jobs")
    assert (status, "hunter2" in str(body)) == (503, False)


def test_only_so_many_failures_are_kept(log: JobLog) -> None:
    for i in range(MOST_FAILURES + 5):
        log.note_end(f"task.{i}", seconds=0, state="failure", error="E")
    names = [failure["name"] for failure in log.failures()]
    assert (len(names), names[0], names[-1]) == (MOST_FAILURES, f"task.{MOST_FAILURES + 4}", "task.5")


def test_writing_to_a_store_that_is_away_stops_no_work(caplog: pytest.LogCaptureFixture) -> None:
    JobLog("redis://:hunter2@127.0.0.1:9/0").note_end("a.task", seconds=1, state="success", error=None)
    assert [record.getMessage() for record in caplog.records] == ["the end of a.task was not noted: ConnectionError"]


def test_a_worker_notes_how_its_tasks_end_and_keeps_no_message(log: JobLog) -> None:
    """Through Celery's own signals, on an application of the test's."""
    app = Celery("test", broker="memory://", set_as_current=False)

    @app.task(name="test.well")  # type: ignore[untyped-decorator]
    def well() -> None: ...

    @app.task(name="test.ill")  # type: ignore[untyped-decorator]
    def ill() -> None:
        raise ValueError("postgresql://veneer:hunter2@db")

    watch = JobWatch(log)
    watch.connect()
    try:
        well.apply()
        ill.apply()
    finally:
        watch.disconnect()
    last = log.last_runs()
    assert (last["test.well"]["state"], last["test.well"]["error"]) == ("success", None)
    assert (last["test.ill"]["state"], last["test.ill"]["error"]) == ("failure", "ValueError")
    assert "hunter2" not in str(log.failures())
    well.apply()
    assert log.counts()["success", "test.well"] == 1


@pytest.fixture
def versions(cast: Cast) -> list[AdapterVersion]:
    made = []
    for tenant, name, state in (
        (cast.acme, "pirate", State.CHECKING),
        (cast.acme, "poet", State.REJECTED),
        (cast.globex, "pirate", State.UPLOADING),
        (cast.globex, "gone", State.DELETED),
    ):
        adapter = Adapter.objects.create(tenant=tenant, name=name, base_model="base")
        report = {"problems": [], "summary": "The rank is too high."} if state == State.REJECTED else None
        source = {"kind": "url"} if state == State.UPLOADING else None
        made.append(
            AdapterVersion.objects.create(
                tenant=tenant, adapter=adapter, number=1, state=state, size_bytes=5, report=report, source=source
            )
        )
    return made


def test_adapters_of_every_tenant_are_found_by_state_and_by_name(operator: Api, versions: list[AdapterVersion]) -> None:
    def found(query: str = "") -> list[tuple[str, str, str]]:
        status, body = operator.get(f"operator/incoming{query}")
        assert status == 200
        return [(row["tenant"], row["adapter"], row["state"]) for row in body["data"]]

    everything = [
        ("globex", "pirate", "uploading"), ("acme", "poet", "rejected"), ("acme", "pirate", "checking"),
    ]  # fmt: skip
    assert sorted(found()) == sorted(everything)
    assert found("?state=rejected") == [("acme", "poet", "rejected")]
    assert sorted(found("?search=PIR")) == [("acme", "pirate", "checking"), ("globex", "pirate", "uploading")]
    assert found("?search=globex") == [("globex", "pirate", "uploading")]
    assert found("?search=globex&state=checking") == []
    [poet] = operator.get("operator/incoming?state=rejected")[1]["data"]
    assert (poet["summary"], poet["is_import"], poet["size_bytes"]) == ("The rank is too high.", False, 5)


@pytest.mark.parametrize(("query", "field"), [("state=deleted", "state"), ("state=x", "state"), ("limit=0", "limit")])
def test_a_wrong_filter_names_the_field(operator: Api, query: str, field: str) -> None:
    status, body = operator.get(f"operator/incoming?{query}")
    assert (status, body["error"]["param"]) == (400, field)
