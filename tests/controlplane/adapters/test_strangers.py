"""What is another tenant's looks exactly like what does not exist, everywhere."""

import pytest
from pytest_django import DjangoAssertNumQueries

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.queries import listed_models, resolve_model
from tenants.scope import ScopeMissing, tenant_scope
from tenants.sql import run_sync
from tests.controlplane.adapters.conftest import start, upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api, Cast, signed_in, with_key

ALIAS = {"splits": [{"version": 1, "weight": 1}]}


@pytest.mark.parametrize("how", ["session", "key"])
def test_every_address_of_anothers_adapter_is_missing(owner: Api, cast: Cast, how: str) -> None:
    version = upload(owner, "pirate")
    opened = start(owner, "open", peft_folder())
    adapter = next(row["id"] for row in owner.get("adapters")[1]["data"] if row["name"] == "pirate")
    before = owner.get("adapters")
    thief = signed_in(cast.stranger) if how == "session" else with_key(cast.globex_key)
    calls = [
        ("GET", "adapters/{adapter}", None),
        ("DELETE", "adapters/{adapter}", None),
        ("PUT", "adapters/{adapter}/alias", ALIAS),
        ("GET", "versions/{version}", None),
        ("PUT", "versions/{opened}/files/adapter_config.json?offset=0", b"{"),
        ("POST", "versions/{opened}/finish", None),
        ("POST", "versions/{version}/finish", None),
    ]
    for method, path, body in calls:
        real = {"adapter": adapter, "version": version["id"], "opened": opened["id"]}
        fake = {"adapter": "adp_none", "version": "adv_none", "opened": "adv_none"}
        foreign, missing = (thief.call(method, path.format(**ids), body) for ids in (real, fake))
        assert foreign[0] == 404, (method, path)
        told = str(foreign[1])
        for name, value in real.items():
            told = told.replace(value, fake[name])
        assert told == str(missing[1])
    assert thief.get("adapters") == (200, {"data": [], "next": None})
    assert owner.get("adapters") == before


def test_the_door_resolves_only_the_tenants_own(owner: Api, cast: Cast) -> None:
    upload(owner, "pirate")
    for model in ("pirate", "pirate@1"):
        assert run_sync(resolve_model(tenant_id=cast.acme.id, model=model, pick=0)) is not None
        assert run_sync(resolve_model(tenant_id=cast.globex.id, model=model, pick=0)) is None
    assert run_sync(listed_models(tenant_id=cast.globex.id)) == []


def test_a_query_without_a_scope_fails_rather_than_leaks(owner: Api, cast: Cast) -> None:
    upload(owner, "pirate")
    for model in (Adapter, AdapterVersion):
        with tenant_scope(None), pytest.raises(ScopeMissing):
            list(model.objects.all())


@pytest.mark.parametrize("count", [1, 3])
def test_a_list_costs_the_same_queries_whatever_its_length(
    owner: Api, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(count):
        upload(owner, f"pirate-{number}")
        upload(owner, f"pirate-{number}")
    # session, user, membership; adapters, versions, files, parts, splits
    with django_assert_num_queries(8):
        assert len(owner.get("adapters")[1]["data"]) == count
