"""What an adapter's bare name answers with."""

from collections import Counter
from typing import Any

import pytest

from controlplane.adapters.queries import listed_models, resolve_model
from tenants.models import AuditRow
from tenants.sql import run_sync
from tests.controlplane.adapters.conftest import check, send, start, upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api, Cast


def resolved(cast: Cast, model: str, pick: float = 0.0) -> str | None:
    found = run_sync(resolve_model(tenant_id=cast.acme.id, model=model, pick=pick))
    return found.name if found else None


def adapter(api: Api) -> dict[str, Any]:
    [found] = api.get("adapters")[1]["data"]
    return dict(found)


def versions(api: Api, count: int) -> str:
    """That many ready versions of `pirate`; the adapter's id."""
    for seed in range(count):
        upload(api, "pirate", peft_folder(seed=seed))
    return str(adapter(api)["id"])


def test_the_name_follows_the_newest_ready_version(owner: Api, cast: Cast) -> None:
    assert resolved(cast, "pirate") is None
    versions(owner, 1)
    alias = {"splits": [{"version": 1, "weight": 100}], "follows_newest": True, "rolls_back_to": None}
    assert adapter(owner)["alias"] == alias
    bad = upload(owner, "pirate", peft_folder(rank=128))
    assert (bad["state"], resolved(cast, "pirate")) == ("rejected", "pirate@1")
    versions(owner, 1)
    assert resolved(cast, "pirate") == "pirate@3"


def test_an_older_version_that_is_ready_later_does_not_take_the_name_back(owner: Api, cast: Cast) -> None:
    folder = peft_folder(seed=1)
    older = start(owner, "pirate", folder)
    upload(owner, "pirate", peft_folder(seed=2))
    send(owner, older["id"], folder)
    owner.post(f"versions/{older['id']}/finish")
    check(older["id"])
    assert owner.get(f"versions/{older['id']}")[1]["state"] == "ready"
    assert resolved(cast, "pirate") == "pirate@2"


def test_once_set_the_name_stays_until_it_is_told_to_follow_again(owner: Api, cast: Cast) -> None:
    adapter_id = versions(owner, 2)
    splits, back = [{"version": 1, "weight": 100}], [{"version": 2, "weight": 100}]
    status, body = owner.put(f"adapters/{adapter_id}/alias", {"splits": splits})
    assert (status, body["alias"]) == (200, {"splits": splits, "follows_newest": False, "rolls_back_to": back})
    versions(owner, 1)
    assert resolved(cast, "pirate") == "pirate@1"
    status, body = owner.put(f"adapters/{adapter_id}/alias", {"follows_newest": True})
    newest = [{"version": 3, "weight": 100}]
    assert (status, body["alias"]) == (200, {"splits": newest, "follows_newest": True, "rolls_back_to": splits})
    assert resolved(cast, "pirate") == "pirate@3"


def test_a_split_shares_by_weight(owner: Api, cast: Cast) -> None:
    adapter_id = versions(owner, 2)
    body = {"splits": [{"version": 2, "weight": 1}, {"version": 1, "weight": 3}]}
    assert owner.put(f"adapters/{adapter_id}/alias", body)[0] == 200
    counts = Counter(resolved(cast, "pirate", pick=step / 100) for step in range(100))
    assert counts == {"pirate@1": 75, "pirate@2": 25}
    [listed] = run_sync(listed_models(tenant_id=cast.acme.id))
    heaviest = next(version for version in adapter(owner)["versions"] if version["number"] == 1)
    assert (listed.id, listed.version_id) == ("pirate", heaviest["id"])


def test_a_number_pins_a_version_whatever_the_alias_says(owner: Api, cast: Cast) -> None:
    versions(owner, 2)
    assert [resolved(cast, f"pirate@{number}") for number in (1, 2, 3)] == ["pirate@1", "pirate@2", None]


@pytest.mark.parametrize(
    "model",
    [
        *(
            "",
            "@",
            "@1",
            "pirate@",
            "pirate@0",
            "pirate@01",
            "pirate@-1",
            "pirate@x",
            "pirate@1@1",
            "pirate@²",
            "PIRATE",
        ),
        *("pirate ", "pirate\x00", "pirate@99999999999999999999", "' OR 1=1 --", "a" * 100_000),
    ],
)
def test_what_is_no_name_is_no_model(owner: Api, cast: Cast, model: str) -> None:
    versions(owner, 1)
    assert resolved(cast, model) is None


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({}, 400, "invalid_request", None),
        ({"splits": []}, 400, "invalid_request", "splits"),
        ({"splits": [{"version": 1, "weight": 1}], "follows_newest": True}, 400, "invalid_request", None),
        ({"splits": [{"version": 9, "weight": 1}]}, 400, "invalid_request", "splits"),
        ({"splits": [{"version": 1, "weight": 0}]}, 400, "invalid_request", "splits.0.weight"),
        ({"splits": [{"version": 1, "weight": -1}]}, 400, "invalid_request", "splits.0.weight"),
        ({"splits": [{"version": 1, "weight": 10_001}]}, 400, "invalid_request", "splits.0.weight"),
        ({"splits": [{"version": 0, "weight": 1}]}, 400, "invalid_request", "splits.0.version"),
        ({"splits": [{"version": 10**12, "weight": 1}]}, 400, "invalid_request", "splits"),
        ({"splits": [{"version": 1}]}, 400, "invalid_request", "splits.0.weight"),
        ({"splits": [{"version": 1, "weight": 1}] * 2}, 400, "invalid_request", "splits"),
        ({"splits": [{"version": n, "weight": 1} for n in (1, 2, 3)]}, 400, "invalid_request", "splits"),
        ({"splits": [{"version": 2, "weight": 1}]}, 409, "version_not_ready", "splits"),
    ],
)
def test_a_split_that_cannot_be_is_refused_and_changes_nothing(
    owner: Api, cast: Cast, body: dict[str, Any], status: int, code: str, param: str | None
) -> None:
    adapter_id = versions(owner, 1)
    start(owner, "pirate", peft_folder())
    before = adapter(owner)
    found, answer = owner.put(f"adapters/{adapter_id}/alias", body)
    assert (found, answer["error"]["code"], answer["error"]["param"]) == (status, code, param)
    assert adapter(owner) == before


def test_moving_a_name_is_on_the_record(owner: Api, cast: Cast) -> None:
    adapter_id = versions(owner, 2)
    owner.put(f"adapters/{adapter_id}/alias", {"splits": [{"version": 1, "weight": 5}]})
    row = AuditRow.objects.get(action="alias.set")
    assert (row.actor, row.target, row.details) == (cast.owner.id, adapter_id, {"splits": {"1": 5}})
