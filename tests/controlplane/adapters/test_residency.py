"""Where a tenant's adapters are, as its pages show it."""

from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api
from tests.controlplane.fake_engine import FakeEngine


def test_each_version_is_where_the_engine_has_it(owner: Api, stranger: Api, engine: FakeEngine) -> None:
    first, second, third = (upload(owner, "pirate", peft_folder(seed=seed)) for seed in range(3))
    engine.tiers = {first["digest"]: "slot", second["digest"]: "host"}
    status, body = owner.get("adapters/residency")
    assert (status, body["is_known"]) == (200, True)
    found = {each["version_id"]: each["place"] for each in body["data"]}
    assert found == {first["id"]: "device", second["id"]: "host", third["id"]: "disk"}
    assert stranger.get("adapters/residency")[1] == {"is_known": True, "data": []}


def test_nothing_is_known_while_the_engine_is_away(owner: Api, engine: FakeEngine) -> None:
    version = upload(owner, "pirate")
    engine.kill()
    body = owner.get("adapters/residency")[1]
    assert body == {"is_known": False, "data": [{"version_id": version["id"], "place": "disk"}]}
