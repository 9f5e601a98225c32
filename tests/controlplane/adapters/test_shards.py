"""An adapter in shards, from its declaration to the folder that the engine reads, and away again."""

from datetime import timedelta
from pathlib import Path

from controlplane.adapters.deletion import DRAIN, remove_drained_files
from controlplane.adapters.models import AdapterVersion
from engine.adapters.format import folder_digest
from tenants.scope import tenant_scope
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import peft_folder, sharded_folder
from tests.controlplane.conftest import Api


def test_shards_are_taken_checked_published_and_removed(owner: Api, places: Path) -> None:
    folder = sharded_folder()
    version = upload(owner, folder=folder)
    assert (version["state"], version["rank"], version["target_modules"]) == ("ready", 4, ["q_proj", "v_proj"])
    published = places / "objects" / "adapters" / version["digest"]
    assert {path.name: path.read_bytes() for path in published.iterdir()} == folder.files
    assert folder_digest(published) == version["digest"]
    (adapter,) = owner.get("adapters")[1]["data"]
    assert owner.delete(f"adapters/{adapter['id']}") == (204, None)
    with tenant_scope("*"):
        deleted = AdapterVersion.objects.get(id=version["id"])
        AdapterVersion.objects.filter(id=deleted.id).update(state_at=deleted.state_at - DRAIN - timedelta(seconds=1))
    assert remove_drained_files() == 1
    assert not published.exists()


def test_one_file_and_shards_of_the_same_tensors_are_two_contents(owner: Api) -> None:
    digests = {upload(owner, folder=folder)["digest"] for folder in (peft_folder(), sharded_folder())}
    assert len(digests) == 2


def test_a_spoilt_index_is_refused_with_its_reason(owner: Api) -> None:
    folder = sharded_folder()
    folder.files["adapter_model.safetensors.index.json"] = b'{"weight_map": {}}'
    version = upload(owner, folder=folder)
    assert version["state"] == "rejected"
    assert [problem["code"] for problem in version["report"]["problems"]] == ["index_invalid"]
