"""What may be declared, and what is refused before a byte is sent."""

from typing import Any

import pytest
from pytest_django import Settings

from controlplane.adapters import starting
from tenants.models import AuditRow
from tests.controlplane.adapters.conftest import start, upload
from tests.controlplane.adapters.peft_folder import BASE, peft_folder
from tests.controlplane.conftest import Api, Cast

DIGEST = "0" * 64
CONFIG = {"name": "adapter_config.json", "size": 10, "sha256": DIGEST}
WEIGHTS = {"name": "adapter_model.safetensors", "size": 10, "sha256": DIGEST}
INDEX = WEIGHTS | {"name": "adapter_model.safetensors.index.json"}
SHARDS = [WEIGHTS | {"name": f"adapter_model-0000{number}-of-00002.safetensors"} for number in (1, 2)]
GOOD = {"name": "pirate", "base_model": BASE, "files": [CONFIG, WEIGHTS]}


def test_a_started_upload_is_described_in_full(owner: Api) -> None:
    status, body = owner.post("adapters", GOOD)
    assert status == 201
    version = body["version"]
    files = [{**file, "received_bytes": 0, "ranges": []} for file in (CONFIG, WEIGHTS)]
    empty = {"digest": None, "rank": None, "target_modules": [], "ready_at": None, "report": None, "source": None}
    fixed = {"id": version["id"], "created_at": version["created_at"]}
    assert version == {**fixed, **empty, "number": 1, "state": "uploading", "size_bytes": 20, "files": files}
    adapter = body["adapter"]
    assert adapter == {
        "id": adapter["id"],
        "name": "pirate",
        "base_model": BASE,
        "created_at": adapter["created_at"],
        "state": "uploading",
        "pinned": False,
        "alias": None,
        "versions": [version],
    }
    assert owner.get(f"adapters/{adapter['id']}") == (200, adapter)
    assert owner.get("adapters") == (200, {"data": [adapter], "next": None})


def test_the_same_name_again_is_the_next_version_of_the_same_adapter(owner: Api, cast: Cast) -> None:
    first, second = owner.post("adapters", GOOD)[1], owner.post("adapters", GOOD)[1]
    assert second["adapter"]["id"] == first["adapter"]["id"]
    assert [version["number"] for version in second["adapter"]["versions"]] == [2, 1]
    actions = list(AuditRow.objects.filter(tenant=cast.acme).order_by("id").values_list("actor", "action"))
    assert actions[1:] == [(cast.owner.id, action) for action in ("adapter.create", "version.start", "version.start")]


def test_another_tenant_may_use_the_same_name(owner: Api, stranger: Api) -> None:
    ours, theirs = owner.post("adapters", GOOD)[1], stranger.post("adapters", GOOD)[1]
    assert ours["adapter"]["id"] != theirs["adapter"]["id"]
    assert theirs["version"]["number"] == 1


def files(*changed: dict[str, Any]) -> dict[str, Any]:
    return {"files": list(changed)}


@pytest.mark.parametrize(
    ("change", "status", "code", "param"),
    [
        ({"base_model": "other-model"}, 400, "unknown_base_model", "base_model"),
        ({"base_model": None}, 400, "invalid_request", "base_model"),
        ({"name": "Pirate"}, 400, "invalid_name", "name"),
        ({"name": "pirate@2"}, 400, "invalid_name", "name"),
        ({"name": "a/b"}, 400, "invalid_name", "name"),
        ({"name": "-a"}, 400, "invalid_name", "name"),
        ({"name": "a" * 64}, 400, "invalid_name", "name"),
        ({"name": BASE}, 400, "invalid_name", "name"),
        ({"name": ""}, 400, "invalid_request", "name"),
        ({"files": []}, 400, "invalid_request", "files"),
        ({"files": "x"}, 400, "invalid_request", "files"),
        (files(CONFIG), 400, "file_missing", "files"),
        (files(WEIGHTS), 400, "file_missing", "files"),
        (files(CONFIG, CONFIG, WEIGHTS), 400, "invalid_request", "files"),
        (files(CONFIG, WEIGHTS | {"name": "adapter_model.bin"}), 400, "pickle_refused", "files"),
        (files(CONFIG, WEIGHTS | {"name": "ADAPTER.PT"}), 400, "pickle_refused", "files"),
        (files(CONFIG, WEIGHTS, CONFIG | {"name": "x.pkl"}), 400, "pickle_refused", "files"),
        (files(CONFIG, WEIGHTS, CONFIG | {"name": "README.md"}), 400, "unknown_file", "files"),
        (files(CONFIG, WEIGHTS, CONFIG | {"name": "../../etc/passwd"}), 400, "unknown_file", "files"),
        (files(CONFIG, WEIGHTS | {"size": 0}), 400, "invalid_request", "files.1.size"),
        (files(CONFIG, WEIGHTS | {"size": -5}), 400, "invalid_request", "files.1.size"),
        (files(CONFIG, WEIGHTS | {"sha256": "abc"}), 400, "invalid_request", "files.1.sha256"),
        (files(CONFIG, WEIGHTS | {"sha256": "A" * 64}), 400, "invalid_request", "files.1.sha256"),
        (files(CONFIG, WEIGHTS | {"size": 2**40}), 413, "adapter_too_large", "files"),
        (files(CONFIG | {"size": 2**21}, WEIGHTS), 413, "adapter_too_large", "files"),
        (files(CONFIG, WEIGHTS, CONFIG | {"name": "tokenizer.json"}), 400, "tokenizer_file_refused", "files"),
        (files(CONFIG, WEIGHTS, CONFIG | {"name": "chat_template.jinja"}), 400, "tokenizer_file_refused", "files"),
        (files(CONFIG, INDEX), 400, "file_missing", "files"),
        (files(CONFIG, SHARDS[0], SHARDS[1]), 400, "file_missing", "files"),
        (files(CONFIG, INDEX, SHARDS[0]), 400, "file_missing", "files"),
        (files(CONFIG, INDEX, *SHARDS, WEIGHTS), 400, "invalid_request", "files"),
        (files(CONFIG, INDEX, *(shard | {"size": 2**29 - 1} for shard in SHARDS)), 413, "adapter_too_large", "files"),
        (files(CONFIG, INDEX | {"size": 2**23}, *SHARDS), 413, "adapter_too_large", "files"),
        (files(CONFIG, INDEX, WEIGHTS | {"name": "adapter_model-1-of-2.safetensors"}), 400, "unknown_file", "files"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(
    owner: Api, change: dict[str, Any], status: int, code: str, param: str
) -> None:
    found, body = owner.post("adapters", GOOD | change)
    error = body["error"]
    assert (found, error["code"]) == (status, code)
    assert error["param"] is not None
    assert error["param"] == param
    assert owner.get("adapters")[1]["data"] == []


def test_a_pickle_is_refused_with_the_remedy(owner: Api) -> None:
    change = files(CONFIG, WEIGHTS | {"name": "adapter_model.bin"})
    message = owner.post("adapters", GOOD | change)[1]["error"]["message"]
    assert "'adapter_model.bin'" in message
    assert "safe_serialization=True" in message


def test_an_unknown_file_is_refused_with_the_allowed_ones(owner: Api) -> None:
    message = owner.post("adapters", GOOD | files(CONFIG | {"name": "README.md"}))[1]["error"]["message"]
    assert "'README.md'" in message
    assert "adapter_config.json and adapter_model.safetensors" in message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"name": "\xff"}', b'"text"'])
def test_a_body_that_is_no_json_object_is_refused(owner: Api, body: bytes) -> None:
    response = owner.client.post("/api/v1/adapters", data=body, content_type="application/json")
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


def test_open_uploads_are_bounded(owner: Api, stranger: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MAX_OPEN_UPLOADS", 2)
    start(owner, "a", peft_folder())
    start(owner, "b", peft_folder())
    status, body = owner.post("adapters", GOOD)
    assert (status, body["error"]["code"]) == (409, "too_many_uploads")
    assert stranger.post("adapters", GOOD)[0] == 201


def test_the_weight_limit_is_the_setting(owner: Api, settings: Settings) -> None:
    settings.MAX_ADAPTER_BYTES = 9
    status, body = owner.post("adapters", GOOD)
    assert (status, body["error"]["code"]) == (413, "adapter_too_large")
    settings.MAX_ADAPTER_BYTES = 10
    assert owner.post("adapters", GOOD)[0] == 201


def test_a_name_that_was_deleted_is_free_and_counts_from_one(owner: Api) -> None:
    first = upload(owner)
    adapter = owner.get("adapters")[1]["data"][0]["id"]
    assert owner.delete(f"adapters/{adapter}") == (204, None)
    again = upload(owner)
    assert (again["number"], again["state"]) == (1, "ready")
    assert again["id"] != first["id"]
