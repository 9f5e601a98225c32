"""An upload from its start to its verdict, over HTTP, with the real check on real files."""

from pathlib import Path
from urllib.parse import urlsplit

from controlplane.adapters.queries import ListedModel, listed_models, resolve_model
from tenants.sql import run_sync
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import BASE, peft_folder
from tests.controlplane.conftest import Api, Cast


def test_an_adapter_goes_from_its_files_to_ready(owner: Api, cast: Cast, places: Path) -> None:
    folder = peft_folder(rank=8)
    version = upload(owner, "pirate", folder)
    assert (version["state"], version["number"], version["rank"]) == ("ready", 1, 8)
    assert version["target_modules"] == ["q_proj", "v_proj"]
    assert version["report"]["summary"] == "Ready: rank 8 on q_proj, v_proj."
    assert version["report"]["problems"] == []
    assert version["report"]["trial"]["largest_difference"] == 0.25
    assert version["size_bytes"] == sum(map(len, folder.files.values()))
    resolved = run_sync(resolve_model(tenant_id=cast.acme.id, model="pirate", pick=0.5))
    assert resolved is not None
    assert (resolved.name, resolved.version_id, resolved.base_model) == ("pirate@1", version["id"], BASE)
    published = Path(urlsplit(resolved.uri).path)
    assert {path.name: path.read_bytes() for path in published.iterdir()} == folder.files
    assert not (places / "staging" / version["id"]).exists()
    [listed] = run_sync(listed_models(tenant_id=cast.acme.id))
    assert isinstance(listed, ListedModel)
    assert (listed.id, listed.version_id, listed.base_model) == ("pirate", version["id"], BASE)
