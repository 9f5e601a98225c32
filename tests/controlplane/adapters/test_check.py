"""The check on real files: what is published, what is refused, and what survives a killed worker."""

import struct
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import TestCase
from django.utils import timezone

from controlplane.adapters import checks
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.objects import publish_files
from controlplane.adapters.staging import staging_folder
from controlplane.adapters.states import TRANSITIONS, State, sources_of
from controlplane.adapters.tasks import check_version, resume_checks
from controlplane.celery import app
from engine.adapters.format import folder_digest
from tenants.models import AuditRow
from tenants.scope import tenant_scope
from tests.controlplane.adapters.conftest import check, send, start, upload
from tests.controlplane.adapters.peft_folder import PeftFolder, peft_folder
from tests.controlplane.conftest import Api, Cast

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def row(version_id: str) -> AdapterVersion:
    with tenant_scope("*"):
        return AdapterVersion.objects.get(id=version_id)


def waiting(owner: Api, folder: PeftFolder | None = None) -> str:
    """A version that is `checking`, which no worker has seen."""
    folder = folder or peft_folder()
    version = start(owner, "pirate", folder)
    send(owner, version["id"], folder)
    assert owner.post(f"versions/{version['id']}/finish")[0] == 202
    return str(version["id"])


def with_files(**files: bytes) -> PeftFolder:
    names = {"config": CONFIG, "weights": WEIGHTS}
    return PeftFolder(peft_folder().files | {names[key]: content for key, content in files.items()})


good_weights = peft_folder().files[WEIGHTS]


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(with_files(config=b"{"), id="config is no JSON"),
        pytest.param(peft_folder(peft_type="IA3"), id="not LoRA"),
        pytest.param(peft_folder(base_model_name_or_path="meta-llama/Llama-2-7b"), id="another base model"),
        pytest.param(peft_folder(rank=128), id="rank over the limit"),
        pytest.param(with_files(weights=good_weights[:-10]), id="truncated"),
        pytest.param(with_files(weights=struct.pack("<Q", 2**63) + good_weights[8:]), id="a lying header"),
        pytest.param(with_files(weights=b"\x80\x02" + b"cposix\nsystem\n" * 20), id="a pickle by another name"),
        pytest.param(with_files(weights=good_weights[:-4] + struct.pack("<f", float("nan"))), id="not a number"),
        pytest.param(
            with_files(weights=good_weights.replace(b"layers.1.self_attn.q_proj", b"layers.9.self_attn.q_proj")),
            id="a layer that is not there",
        ),
    ],
)
def test_a_bad_adapter_is_rejected_with_reasons_and_published_nowhere(
    owner: Api, places: Path, folder: PeftFolder
) -> None:
    version = upload(owner, folder=folder)
    assert version["state"] == "rejected"
    report = version["report"]
    assert report["problems"]
    for problem in report["problems"]:
        assert set(problem) == {"code", "where", "found", "expected", "remedy"}
        assert all(isinstance(text, str) and text for text in problem.values())
    assert (version["digest"], version["rank"], version["ready_at"]) == (None, None, None)
    assert not (places / "objects" / "adapters").exists()
    assert not staging_folder(version["id"]).exists()
    adapter = owner.get("adapters")[1]["data"][0]
    assert (adapter["state"], adapter["alias"]) == ("rejected", None)


def test_finishing_sends_the_check_only_after_the_commit(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: sent.append((name, args)))
    with TestCase.captureOnCommitCallbacks() as callbacks:
        version_id = waiting(owner)
    assert sent == []
    for callback in callbacks:
        callback()
    assert sent == [("adapters.check_version", (version_id,))]


def test_every_task_that_is_sent_or_scheduled_is_registered() -> None:
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values() if entry["task"].startswith("adapters.")}
    assert scheduled | {"adapters.check_version", "adapters.fetch_version"} <= set(app.tasks)
    resumed = {f"adapters.resume_{what}" for what in ("checks", "evaluations", "imports")}
    assert scheduled == {*resumed, "adapters.sweep"}


def test_a_check_that_runs_again_changes_nothing(owner: Api) -> None:
    version_id = waiting(owner)
    check(version_id)
    first = row(version_id)
    check(version_id)
    check_version("adv_doesnotexist")
    assert row(version_id).__dict__ | {"_state": None} == first.__dict__ | {"_state": None}


def test_a_worker_killed_after_publishing_leaves_a_version_that_the_next_check_completes(
    owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_id = waiting(owner)

    class Killed(BaseException):
        pass

    def killed(folder: Path, digest: str) -> str:
        publish_files(folder, digest)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checks, "publish_files", killed)
        with pytest.raises(Killed):
            check_version(version_id)
    assert (row(version_id).state, row(version_id).check_attempts) == ("checking", 1)
    check(version_id)
    assert row(version_id).state == "ready"


def test_stuck_checks_are_sent_again_once_a_minute(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(checks, "enqueue", lambda task, version_id: sent.append((task, version_id)))
    version_id = waiting(owner)
    resume_checks()
    assert sent == []  # it may well be waiting for its turn
    with tenant_scope("*"):
        AdapterVersion.objects.update(state_at=timezone.now() - checks.STUCK_AFTER - timedelta(seconds=1))
    resume_checks()
    resume_checks()
    assert sent == [("adapters.check_version", version_id)]


def test_a_check_that_kills_its_worker_is_given_up_and_said_so(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    version_id = waiting(owner)

    def crash(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(checks, "read_adapter", crash)
    for _ in range(checks.MAX_ATTEMPTS):
        with pytest.raises(MemoryError):
            check_version(version_id)
    assert row(version_id).state == "checking"
    check_version(version_id)
    found = row(version_id)
    assert (found.state, [problem["code"] for problem in found.report["problems"]]) == ("rejected", ["check_failed"])


def test_a_base_model_that_is_away_costs_no_attempt(owner: Api, settings: Any, tmp_path: Path) -> None:
    version_id = waiting(owner)
    model = settings.MODEL_DIR
    settings.MODEL_DIR = tmp_path / "nowhere"
    with pytest.raises(OSError):
        check_version(version_id)
    assert row(version_id).check_attempts == 0
    settings.MODEL_DIR = model
    check(version_id)
    assert row(version_id).state == "ready"


def test_the_same_content_twice_is_published_once_and_both_are_ready(owner: Api, stranger: Api, places: Path) -> None:
    folder = peft_folder()
    versions = [upload(owner, "one", folder), upload(owner, "two", folder), upload(stranger, "three", folder)]
    assert [version["state"] for version in versions] == ["ready"] * 3
    [digest] = {version["digest"] for version in versions}
    assert [path.name for path in (places / "objects" / "adapters").iterdir()] == [digest]
    assert folder_digest(places / "objects" / "adapters" / digest) == digest


def test_a_published_copy_that_was_damaged_is_replaced(owner: Api, places: Path) -> None:
    folder = peft_folder()
    digest = upload(owner, "one", folder)["digest"]
    published = places / "objects" / "adapters" / digest / WEIGHTS
    published.write_bytes(b"")
    upload(owner, "two", folder)
    assert published.read_bytes() == folder.files[WEIGHTS]


def test_a_version_deleted_while_it_is_checked_stays_deleted(
    owner: Api, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_id = waiting(owner)
    adapter = owner.get("adapters")[1]["data"][0]["id"]
    read = checks.read_adapter

    def slow_check(*args: Any) -> Any:
        found = read(*args)
        assert owner.delete(f"adapters/{adapter}")[0] == 204
        return found

    monkeypatch.setattr(checks, "read_adapter", slow_check)
    check_version(version_id)
    assert row(version_id).state == "deleted"
    assert not (places / "objects" / "adapters").exists()


def test_each_change_of_state_is_announced(owner: Api, monkeypatch: pytest.MonkeyPatch, cast: Cast) -> None:
    events: list[tuple[str, str, dict[str, str]]] = []

    def publish(*, tenant_id: str, event: str, data: dict[str, str]) -> None:
        events.append((tenant_id, event, data))

    monkeypatch.setattr("controlplane.adapters.uploads.publish", publish)
    version = upload(owner)
    adapter = owner.get("adapters")[1]["data"][0]["id"]
    owner.delete(f"adapters/{adapter}")
    ids = {"adapter_id": adapter, "version_id": version["id"]}
    states = ("uploading", "checking", "ready", "deleted")
    assert events == [(cast.acme.id, "adapter.state", {**ids, "state": state}) for state in states]


def test_what_the_system_did_is_on_the_record(owner: Api) -> None:
    version = upload(owner)
    actions = AuditRow.objects.filter(target=version["id"]).order_by("id").values_list("actor", "action")
    assert [action for _, action in actions] == ["version.start", "version.finish", "version.ready"]
    assert actions[2][0] == "system"


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "f" * 64},
        {"rank": 1},
        {"uri": "file:///elsewhere"},
        {"number": 9},
        {"size_bytes": 1},
        {"ready_at": None},
    ],
)
def test_a_ready_version_cannot_be_changed_even_by_us(owner: Api, change: dict[str, Any]) -> None:
    version = upload(owner)
    with tenant_scope("*"), pytest.raises(IntegrityError), transaction.atomic():
        AdapterVersion.objects.filter(id=version["id"]).update(**change)


def test_states_lead_only_where_the_table_says() -> None:
    assert {state: sorted(targets) for state, targets in TRANSITIONS.items()} == {
        "uploading": ["checking", "deleted", "rejected"],
        "checking": ["deleted", "ready", "rejected"],
        "ready": ["deleted"],
        "rejected": ["deleted"],
        "deleted": [],
    }
    assert sources_of(State.READY) == [State.CHECKING]
