"""Deletion: the name at once, the files when nobody can be reading them, the rows never."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import TestCase
from django.utils import timezone

from controlplane.adapters.deletion import DRAIN, UPLOAD_EXPIRES
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.queries import listed_models, resolve_model
from controlplane.adapters.staging import staging_folder
from controlplane.adapters.tasks import sweep
from tenants.models import AuditRow
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.adapters.conftest import send, start, upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api, Cast


@pytest.fixture(autouse=True)
def _as_unlocked_scope() -> Any:
    with tenant_scope("*"):
        yield


def adapter_id(api: Api, name: str = "pirate") -> str:
    return next(row["id"] for row in api.get("adapters")[1]["data"] if row["name"] == name)


def delete(api: Api, name: str = "pirate") -> None:
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert api.delete(f"adapters/{adapter_id(api, name)}") == (204, None)


def let_time_pass(by: timedelta) -> None:
    for version in AdapterVersion.objects.all():
        AdapterVersion.objects.filter(id=version.id).update(state_at=version.state_at - by)


def test_the_name_and_its_versions_are_gone_at_once(owner: Api, cast: Cast) -> None:
    version = upload(owner)
    adapter = adapter_id(owner)
    delete(owner)
    assert owner.get("adapters") == (200, {"data": [], "next": None})
    gone = [f"adapters/{adapter}", f"versions/{version['id']}"]
    assert [owner.get(path)[0] for path in gone] == [404, 404]
    assert owner.delete(f"adapters/{adapter}")[0] == 404
    assert owner.put(f"adapters/{adapter}/alias", {"follows_newest": True})[0] == 404
    assert owner.post(f"versions/{version['id']}/finish")[0] == 404
    for model in ("pirate", "pirate@1"):
        assert run_sync(resolve_model(tenant_id=cast.acme.id, model=model, pick=0)) is None
    assert run_sync(listed_models(tenant_id=cast.acme.id)) == []


def test_the_rows_stay_for_the_bills_that_mention_them(owner: Api) -> None:
    version = upload(owner)
    delete(owner)
    kept = AdapterVersion.objects.get(id=version["id"])
    assert (kept.state, kept.digest, kept.number) == ("deleted", version["digest"], 1)
    assert AuditRow.objects.filter(action="adapter.delete").get().details == {"name": "pirate"}


def test_the_files_stay_until_running_requests_have_ended(owner: Api, places: Path) -> None:
    digest = upload(owner)["digest"]
    published = places / "objects" / "adapters" / digest
    delete(owner)
    sweep()
    assert published.exists()
    let_time_pass(DRAIN + timedelta(seconds=1))
    sweep()
    assert not published.exists()
    sweep()  # and again: nothing to do


def test_files_stay_while_another_version_has_the_same(owner: Api, stranger: Api, places: Path) -> None:
    folder = peft_folder()
    digest = upload(owner, "pirate", folder)["digest"]
    upload(stranger, "corsair", folder)
    published = places / "objects" / "adapters" / digest
    delete(owner)
    let_time_pass(DRAIN + timedelta(seconds=1))
    sweep()
    assert {path.name: path.read_bytes() for path in published.iterdir()} == folder.files
    delete(stranger, "corsair")
    sweep()
    assert published.exists()  # its own requests drain first
    let_time_pass(DRAIN + timedelta(seconds=1))
    sweep()
    assert not published.exists()


def test_deleting_an_open_upload_drops_its_parts(owner: Api) -> None:
    folder = peft_folder()
    version = start(owner, "pirate", folder)
    send(owner, version["id"], folder)
    assert staging_folder(version["id"]).exists()
    delete(owner)
    assert not staging_folder(version["id"]).exists()
    status, _ = owner.put(f"versions/{version['id']}/files/adapter_config.json?offset=0", b"{")
    assert status == 404


def test_an_upload_that_nobody_finished_is_given_up_after_a_day(owner: Api) -> None:
    folder = peft_folder()
    ready = upload(owner, "pirate", folder)
    old = start(owner, "pirate", folder)
    young = start(owner, "pirate", folder)
    send(owner, old["id"], folder)
    AdapterVersion.objects.filter(id=old["id"]).update(created_at=timezone.now() - UPLOAD_EXPIRES)
    with TestCase.captureOnCommitCallbacks(execute=True):
        sweep()
    assert not staging_folder(old["id"]).exists()
    [adapter] = owner.get("adapters")[1]["data"]
    assert {version["id"] for version in adapter["versions"]} == {ready["id"], young["id"]}
    assert AuditRow.objects.filter(action="version.expire").get().target == old["id"]
