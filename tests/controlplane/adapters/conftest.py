"""Adapters of the tests: their base model, their places on disk, and an upload through the API."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import TestCase
from pytest_django import Settings

from controlplane.adapters.tasks import check_version
from controlplane.adapters.trials import Trial, accept_trial
from tests.controlplane.adapters.peft_folder import BASE, PeftFolder, peft_folder, write_base
from tests.controlplane.conftest import Api
from tests.controlplane.fake_engine import FakeEngine


@pytest.fixture(autouse=True)
def places(settings: Settings, tmp_path: Path) -> Path:
    settings.MODEL_DIR = write_base(tmp_path / "models")
    settings.OBJECTS_DIR = tmp_path / "objects"
    settings.STAGING_DIR = tmp_path / "staging"
    return tmp_path


@pytest.fixture
def engine(tmp_path: Path, settings: Settings) -> Iterator[FakeEngine]:
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock", base_model=settings.MODEL_DIR.name).start()
    settings.ENGINE_URL = found.url
    yield found
    found.kill()


def start(api: Api, name: str, folder: PeftFolder) -> dict[str, Any]:
    """The new version."""
    status, body = api.post("adapters", {"name": name, "base_model": BASE, "files": folder.declaration()})
    assert status == 201, body
    version: dict[str, Any] = body["version"]
    return version


def send(api: Api, version_id: str, folder: PeftFolder) -> None:
    for name, content in folder.files.items():
        status, body = api.put(f"versions/{version_id}/files/{name}?offset=0", content)
        assert (status, body) == (200, {"received_bytes": len(content), "ranges": [[0, len(content)]]})


def check(version_id: str) -> None:
    """As a worker and an engine that finds nothing wrong."""
    check_version(version_id)
    accept_trial(version_id, Trial(prompt_tokens=5, largest_difference=0.25, text=" Ahoy", base_text=" Hello"))


def upload(api: Api, name: str = "pirate", folder: PeftFolder | None = None) -> dict[str, Any]:
    """Start, send, finish, check: the version as it is then."""
    folder = folder or peft_folder()
    version = start(api, name, folder)
    send(api, version["id"], folder)
    status, body = api.post(f"versions/{version['id']}/finish")
    assert (status, body["state"]) == (202, "checking")
    with TestCase.captureOnCommitCallbacks(execute=True):
        check(version["id"])
    status, body = api.get(f"versions/{version['id']}")
    assert status == 200
    found: dict[str, Any] = body
    return found
