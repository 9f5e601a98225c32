"""What others share with a tenant, as it sees it, and how it gives that back."""

from pathlib import Path

import pytest

from controlplane.adapters.queries import resolve_model
from tenants.models import AuditRow
from tenants.sql import run_sync
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api, Cast, signed_in


@pytest.fixture
def pirate(owner: Api, places: Path) -> str:
    upload(owner, "pirate")
    upload(owner, "secret", peft_folder(seed=3))
    found = {each["name"]: each["id"] for each in owner.get("adapters")[1]["data"]}
    status, body = owner.post(f"adapters/{found['pirate']}/grants", {"tenant": "globex"})
    assert status == 201, body
    return str(found["pirate"])


def test_what_is_shared_is_listed_to_whom_it_is_shared_with(owner: Api, stranger: Api, pirate: str) -> None:
    base_model = owner.get(f"adapters/{pirate}")[1]["base_model"]
    expected = {"id": pirate, "model": "acme/pirate", "owner": "acme", "base_model": base_model, "versions": [1]}
    assert stranger.get("adapters/shared") == (200, {"data": [expected]})
    assert owner.get("adapters/shared") == (200, {"data": []})


def test_given_back_it_does_not_answer_and_both_sides_know(owner: Api, stranger: Api, cast: Cast, pirate: str) -> None:
    assert owner.delete(f"adapters/shared/{pirate}")[0] == 404
    assert stranger.delete(f"adapters/shared/{pirate}") == (204, None)
    assert stranger.delete(f"adapters/shared/{pirate}")[0] == 404
    assert stranger.get("adapters/shared")[1] == {"data": []}
    assert owner.get(f"adapters/{pirate}/grants")[1] == {"data": []}
    assert run_sync(resolve_model(tenant_id=cast.globex.id, model="acme/pirate", pick=0.5)) is None
    told = {(row.tenant_id, row.action, row.actor) for row in AuditRow.objects.filter(action__startswith="grant.give")}
    assert told == {
        (cast.acme.id, "grant.given_back", "system"),
        (cast.globex.id, "grant.give_back", cast.stranger.id),
    }


def test_a_viewer_sees_and_keeps_what_is_shared(cast: Cast, stranger: Api, owner: Api, places: Path) -> None:
    upload(stranger, "poet")
    [poet] = stranger.get("adapters")[1]["data"]
    stranger.post(f"adapters/{poet['id']}/grants", {"tenant": "acme"})
    viewer = signed_in(cast.people["viewer"])
    assert [each["model"] for each in viewer.get("adapters/shared")[1]["data"]] == ["globex/poet"]
    assert viewer.delete(f"adapters/shared/{poet['id']}")[0] == 403


def test_adapters_are_searched_by_name_and_state(owner: Api, pirate: str) -> None:
    def names(query: str) -> list[str]:
        return [each["name"] for each in owner.get(f"adapters?{query}")[1]["data"]]

    assert names("q=PIR") == ["pirate"]
    assert names("q=e&state=ready") == ["secret", "pirate"]
    assert names("state=rejected") == []
    assert names("q=%25") == []
    assert owner.get("adapters?state=odd")[1]["error"]["param"] == "state"
