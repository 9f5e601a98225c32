"""A pinned adapter is one that the engine keeps: an admin says which, the engine is told again when it forgets."""

import pytest

from controlplane.adapters.deletion import delete_adapter
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.pins import sync_pins as tell_pins
from controlplane.inference.tasks import sync_pins
from engine.protocol import Pin
from tenants.models import AuditRow
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.fake_engine import FakeEngine


def adapters(api: Api, *names: str) -> list[str]:
    for seed, name in enumerate(names):
        upload(api, name, peft_folder(seed=seed))
    ids = {each["name"]: each["id"] for each in api.get("adapters")[1]["data"]}
    return [ids[name] for name in names]


def digests(api: Api, adapter_id: str) -> list[str]:
    return [each["digest"] for each in api.get(f"adapters/{adapter_id}")[1]["versions"]]


def test_the_engine_is_told_also_after_it_forgot(owner: Api, cast: Cast, engine: FakeEngine) -> None:
    pirate, sql = adapters(owner, "pirate", "sql")
    status, body = owner.put(f"adapters/{pirate}/pin", {"pinned": True})
    assert (status, body["pinned"]) == (200, True)
    assert owner.get(f"adapters/{sql}")[1]["pinned"] is False
    sync_pins()
    assert engine.pinned == digests(owner, pirate)
    sync_pins()
    assert len(engine.of(Pin)) == 1, "what is pinned is not pinned again"
    engine.kill()
    engine.start()
    assert engine.pinned == []
    sync_pins()
    assert engine.pinned == digests(owner, pirate)
    owner.put(f"adapters/{pirate}/pin", {"pinned": False})
    sync_pins()
    assert engine.pinned == []
    rows = AuditRow.objects.filter(action__in=["adapter.pin", "adapter.unpin"]).order_by("id")
    assert [(row.action, row.actor, row.target) for row in rows] == [
        ("adapter.pin", cast.people["owner"].id, pirate), ("adapter.unpin", cast.people["owner"].id, pirate),
    ]  # fmt: skip


def test_the_pin_follows_the_name_and_ends_with_it(owner: Api, cast: Cast, engine: FakeEngine) -> None:
    [pirate] = adapters(owner, "pirate")
    owner.put(f"adapters/{pirate}/pin", {"pinned": True})
    sync_pins()
    upload(owner, "pirate", peft_folder(seed=7))
    sync_pins()
    newest, oldest = digests(owner, pirate)
    assert engine.pinned == [newest]
    owner.put(f"adapters/{pirate}/alias", {"splits": [{"version": 1, "weight": 1}, {"version": 2, "weight": 1}]})
    sync_pins()
    assert set(engine.pinned) == {newest, oldest}
    delete_adapter(tenant=cast.acme, actor="system", adapter_id=pirate, is_forced=True)
    sync_pins()
    assert engine.pinned == []


def test_a_tenant_may_pin_so_many(owner: Api, engine: FakeEngine) -> None:
    first, second, third = adapters(owner, "a", "b", "c")
    for each in (first, second, first):
        assert owner.put(f"adapters/{each}/pin", {"pinned": True})[0] == 200
    status, body = owner.put(f"adapters/{third}/pin", {"pinned": True})
    assert (status, body["error"]["code"], body["error"]["param"]) == (409, "too_many_pins", "pinned")
    assert "2 adapters are pinned, and a tenant may pin 2" in body["error"]["message"]
    owner.put(f"adapters/{first}/pin", {"pinned": False})
    assert owner.put(f"adapters/{third}/pin", {"pinned": True})[0] == 200


def test_an_engine_without_room_keeps_those_that_came_first(
    owner: Api, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.slots = 2
    first, second = adapters(owner, "zed", "abe")
    for each in (first, second):
        owner.put(f"adapters/{each}/pin", {"pinned": True})
    sync_pins()
    assert engine.pinned == digests(owner, first)
    assert "no slot is left" in caplog.text


def test_an_engine_that_is_away_does_not_matter(owner: Api, engine: FakeEngine) -> None:
    engine.kill()
    sync_pins()


def test_only_admins_pin_and_only_their_own(owner: Api, cast: Cast) -> None:
    [pirate] = adapters(owner, "pirate")
    path = f"adapters/{pirate}/pin"
    found = {role: signed_in(person).put(path, {"pinned": True})[0] for role, person in cast.people.items()}
    assert found == {"owner": 200, "admin": 200, "developer": 403, "billing": 403, "viewer": 403}
    assert with_key(cast.globex_key).put(path, {"pinned": False})[0] == 403
    assert owner.put("adapters/adp_missing/pin", {"pinned": True})[0] == 404
    assert owner.put(path, {"pinned": "perhaps"})[1]["error"]["param"] == "pinned"
    assert owner.put(path, {})[1]["error"]["param"] == "pinned"


def test_what_the_engine_has_pinned_of_nobody_is_let_go(owner: Api, engine: FakeEngine) -> None:
    engine.pinned.append("0" * 64)
    with EngineCalls(engine.url) as calls:
        tell_pins(calls)
    assert engine.pinned == []
