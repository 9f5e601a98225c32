"""Prompts kept with an adapter: what is taken, what is refused, whose they are."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters import prompt_sets
from controlplane.adapters.evaluation_models import PromptSet
from tenants.models import AuditRow
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.conftest import Api

SEA: dict[str, Any] = {
    "messages": [{"role": "system", "content": " Be brief."}, {"role": "user", "content": "Tell me about the sea."}],
    "contains": "sea ",
}
JSON: dict[str, Any] = {"prompt": "A ship as JSON:", "json_schema": {"type": "object", "required": ["name"]}}


@pytest.fixture
def pirate(owner: Api, places: Path) -> str:
    upload(owner, "pirate")
    return str(owner.get("adapters")[1]["data"][0]["id"])


def create(api: Api, adapter: str, name: str = "smoke", prompts: Any = (SEA, JSON)) -> tuple[int, Any]:
    return api.post(f"adapters/{adapter}/prompt-sets", {"name": name, "prompts": prompts})


def test_a_set_is_kept_as_it_was_sent_listed_and_deleted(owner: Api, pirate: str) -> None:
    status, made = create(owner, pirate)
    assert (status, made["prompts"], made["size"], made["adapter_id"]) == (201, [SEA, JSON], 2, pirate)
    assert owner.get(f"prompt-sets/{made['id']}") == (200, made)
    create(owner, pirate, "second", [SEA])
    page = owner.get(f"adapters/{pirate}/prompt-sets?limit=1")[1]
    assert [row["name"] for row in page["data"]] == ["second"]
    rest = owner.get(f"adapters/{pirate}/prompt-sets?limit=1&cursor={page['next']}")[1]
    assert ([row["name"] for row in rest["data"]], rest["next"]) == (["smoke"], None)
    assert "prompts" not in rest["data"][0]
    assert owner.delete(f"prompt-sets/{made['id']}") == (204, None)
    assert owner.get(f"prompt-sets/{made['id']}")[0] == 404
    rows = AuditRow.objects.filter(target=made["id"]).order_by("id").values_list("action", "details")
    details = {"adapter": pirate, "name": "smoke"}
    assert list(rows) == [("prompt_set.create", details | {"prompts": 2}), ("prompt_set.delete", details)]


def test_a_name_is_taken_once_and_there_are_only_so_many(
    owner: Api, pirate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(owner, pirate)
    status, body = create(owner, pirate)
    assert (status, body["error"]["code"], body["error"]["param"]) == (409, "name_taken", "name")
    monkeypatch.setattr(prompt_sets, "MAX_SETS", 1)
    status, body = create(owner, pirate, "other")
    assert (status, body["error"]["code"]) == (409, "too_many_prompt_sets")


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        ({}, "prompts.1"), ({"prompt": "a", "messages": SEA["messages"]}, "prompts.1"), ({"prompt": ""}, "prompt"),
        ({"prompt": "a\0b"}, "prompt"), ({"prompt": "a\ud800"}, "prompt"), ({"prompt": "x" * 16_001}, "prompt"),
        ({"prompt": "a", "contain": "b"}, "contain"), ({"prompt": "a", "contains": ""}, "contains"),
        ({"messages": []}, "messages"), ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, "name"),
        ({"messages": [{"role": "user", "content": "x" * 9000}] * 2}, "messages"),
        ({"prompt": "a", "json_schema": "object"}, "json_schema"),
        ({"prompt": "a", "json_schema": {"type": 3}}, "json_schema"),
        ({"prompt": "a", "json_schema": {"$ref": "https://example.org/s"}}, "json_schema"),
        ({"prompt": "a", "json_schema": {"properties": {"x": {"$ref": "file:///etc/passwd"}}}}, "json_schema"),
        ({"prompt": "a", "json_schema": {"title": "\0"}}, "json_schema"),
        ({"prompt": "a", "json_schema": {"title": "\ud800"}}, "json_schema"),
        ({"prompt": "a", "json_schema": {"\0": 1}}, "json_schema"),
        ({"prompt": "a", "json_schema": {"title": "x" * 20_000}}, "json_schema"),
    ],
)  # fmt: skip
def test_a_prompt_that_is_wrong_is_refused_by_its_field(owner: Api, pirate: str, prompt: Any, param: str) -> None:
    status, body = create(owner, pirate, prompts=[SEA, prompt])
    assert status == 400, body
    assert body["error"]["param"].endswith(param), body
    assert not PromptSet.objects.exists()


def test_a_schema_that_is_nested_without_end_is_refused(owner: Api, pirate: str) -> None:
    schema: dict[str, Any] = {}
    for _ in range(40):
        schema = {"not": schema}
    status, body = create(owner, pirate, prompts=[{"prompt": "a", "json_schema": schema}])
    assert (status, "nested" in body["error"]["message"]) == (400, True)


@pytest.mark.parametrize("name", ["", "-x", "x/", "x" * 64, "a\0", None, []])
def test_a_name_that_cannot_be_used_is_refused(owner: Api, pirate: str, name: Any) -> None:
    status, body = create(owner, pirate, name)
    assert (status, body["error"]["param"]) == (400, "name")


@pytest.mark.parametrize("prompts", [[], None, "x", [SEA] * 101, [{"prompt": "x" * 15_000}] * 14])
def test_a_set_has_bounds(owner: Api, pirate: str, prompts: Any) -> None:
    status, body = create(owner, pirate, prompts=prompts)
    assert status == 400
    assert body["error"]["param"].startswith("prompts")


def test_a_stranger_sees_and_makes_none(owner: Api, stranger: Api, pirate: str) -> None:
    made = create(owner, pirate)[1]
    assert create(stranger, pirate, "theirs")[0] == 404
    assert stranger.get(f"adapters/{pirate}/prompt-sets")[0] == 404
    assert stranger.get(f"prompt-sets/{made['id']}")[0] == 404
    assert stranger.delete(f"prompt-sets/{made['id']}")[0] == 404
    assert owner.get(f"prompt-sets/{made['id']}")[0] == 200


def test_sets_go_with_their_adapter(owner: Api, pirate: str) -> None:
    made = create(owner, pirate)[1]
    assert owner.delete(f"adapters/{pirate}")[0] == 204
    assert owner.get(f"prompt-sets/{made['id']}")[0] == 404
    assert not PromptSet.objects.exists()
