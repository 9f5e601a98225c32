"""/v1/files with the unmodified `openai` package, and what is refused of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from django.utils import timezone

from controlplane.batches.files import display_name, remove_expired
from controlplane.batches.models import File
from tenants.key_services import issue_key
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.batches.conftest import chat, create, jsonl, upload, work_off
from tests.controlplane.inference.conftest import Caller, Served, new_caller

LINES = [chat(1), chat(2)]
FORM = {"purpose": "batch"}


def test_a_file_comes_back_as_it_was(client: openai.OpenAI, objects: Path) -> None:
    raw = jsonl(LINES) + bytes(range(256))
    file = client.files.create(file=("questions.jsonl", raw), purpose="batch")
    assert (file.object, file.bytes, file.filename) == ("file", len(raw), "questions.jsonl")
    assert (file.purpose, file.status) == ("batch", "processed")
    assert file.expires_at - file.created_at == 30 * 86400
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).content == raw
    assert [each.id for each in client.files.list()] == [file.id]
    deleted = client.files.delete(file.id)
    assert (deleted.id, deleted.deleted) == (file.id, True)
    assert list(client.files.list()) == []
    assert [path for path in objects.rglob("*") if path.is_file()] == []
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_lists_are_paged(client: openai.OpenAI) -> None:
    ids = [upload(client, [chat(i)]) for i in range(5)]
    assert [file.id for file in client.files.list(limit=2)] == ids[::-1]
    assert [file.id for file in client.files.list(limit=2, order="asc")] == ids
    assert [file.id for file in client.files.list(purpose="batch")] == ids[::-1]
    assert list(client.files.list(purpose="batch_output")) == []
    first = client.files.list(limit=2)
    client.files.delete(ids[0])
    assert [file.id for file in first] == ids[:0:-1]  # what vanishes meanwhile shifts nothing


def test_a_large_file_is_taken(client: openai.OpenAI, settings: Any) -> None:
    """Larger than any other body may be."""
    raw = b"x" * (settings.MAX_BODY_BYTES + 100_000)
    assert client.files.create(file=("a", raw), purpose="batch").bytes == len(raw)


def test_a_file_too_large_is_refused(client: openai.OpenAI, settings: Any) -> None:
    settings.MAX_BATCH_FILE_BYTES = 1000
    with pytest.raises(openai.APIStatusError) as caught:
        client.files.create(file=("a", b"x" * 1001), purpose="batch")
    assert (caught.value.status_code, caught.value.param) == (413, "file")
    assert "1001" in caught.value.message


def test_nobody_uploads_without_a_key(stack: Served, settings: Any) -> None:
    raw = b"x" * (settings.MAX_BODY_BYTES + 100_000)
    response = httpx.post(f"{stack.url}/v1/files", data=FORM, files={"file": ("a", raw)}, timeout=30)
    assert response.status_code == 413
    assert httpx.post(f"{stack.url}/v1/files", data=FORM, files={"file": ("a", b"x")}).status_code == 401


def test_a_tenant_has_only_so_much_room(client: openai.OpenAI, settings: Any) -> None:
    settings.MAX_FILE_BYTES_PER_TENANT = 1500
    client.files.create(file=("a", b"x" * 1000), purpose="batch")
    with pytest.raises(openai.APIStatusError) as caught:
        client.files.create(file=("a", b"x" * 501), purpose="batch")
    assert (caught.value.status_code, caught.value.code) == (413, "file_storage_full")
    client.files.create(file=("a", b"x" * 500), purpose="batch")


BAD: dict[str, tuple[dict[str, str], dict[str, Any], str | None]] = {
    "no purpose": ({}, {"file": ("a", b"x")}, "purpose"),
    "another purpose": ({"purpose": "fine-tune"}, {"file": ("a", b"x")}, "purpose"),
    "no file": (FORM, {"other": ("a", b"x")}, "file"),
    "a file without a name": (FORM, {"file": (None, b"x")}, "file"),
    "an empty file": (FORM, {"file": ("a", b"")}, "file"),
    "an anchor": (FORM | {"expires_after[anchor]": "x"}, {"file": ("a", b"x")}, "expires_after[anchor]"),
    "too soon": (
        FORM | {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3599"},
        {"file": ("a", b"x")},
        "expires_after[seconds]",
    ),
    "too late": (
        FORM | {"expires_after[anchor]": "created_at", "expires_after[seconds]": "2592001"},
        {"file": ("a", b"x")},
        "expires_after[seconds]",
    ),
    "no number": (
        FORM | {"expires_after[anchor]": "created_at", "expires_after[seconds]": "-1"},
        {"file": ("a", b"x")},
        "expires_after[seconds]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_form_that_is_wrong_names_its_field(http: httpx.Client, name: str) -> None:
    data, files, param = BAD[name]
    response = http.post("/files", data=data, files=files)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "body, kind, status",
    [
        (b'{"purpose": "batch"}', "application/json", 415),
        (b"nothing of a form", "multipart/form-data; boundary=x", 400),
        (b"x", "multipart/form-data", 400),
        (b"", "multipart/form-data; boundary=x", 400),
    ],
)
def test_what_is_no_form_is_refused(http: httpx.Client, body: bytes, kind: str, status: int) -> None:
    response = http.post("/files", content=body, headers={"Content-Type": kind})
    assert (response.status_code, set(response.json()["error"])) == (status, {"message", "type", "param", "code"})


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=10001", "order=up", "purpose=x", "after=file_none", "after=%00"]
)
def test_lists_name_what_is_wrong(http: httpx.Client, query: str) -> None:
    response = http.get(f"/files?{query}")
    assert (response.status_code, response.json()["error"]["param"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize(
    "name, shown",
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\secret\\a.jsonl", "a.jsonl"),
        ("a\r\nSet-Cookie: x", "aSet-Cookie: x"),
        ("\u202egnp.exe", "gnp.exe"),
        ("/", "file"),
        ("x" * 300, "x" * 255),
    ],
)
def test_names_lead_nowhere(name: str, shown: str) -> None:
    assert display_name(name) == shown


def test_a_name_with_a_path_is_a_name(client: openai.OpenAI, objects: Path) -> None:
    file = client.files.create(file=("../../../escaped.jsonl", b"x"), purpose="batch")
    assert file.filename == "escaped.jsonl"
    [stored] = [path for path in objects.rglob("*") if path.is_file()]
    assert stored.name == file.id
    response = client.files.content(file.id).response
    assert response.headers["content-disposition"] == f'attachment; filename="{file.id}.jsonl"'
    assert response.headers["x-content-type-options"] == "nosniff"


def answers(url: str, headers: dict[str, str], file_id: str) -> list[tuple[int, str]]:
    """Everything one may try with a file's id."""
    with httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=30) as api:
        batch = {"input_file_id": file_id, "endpoint": "/v1/completions", "completion_window": "24h"}
        found = [
            api.get(f"/files/{file_id}"),
            api.get(f"/files/{file_id}/content"),
            api.delete(f"/files/{file_id}"),
            api.post("/batches", json=batch),
        ]
        return [(each.status_code, each.text.replace(file_id, "<id>")) for each in found]


def test_anothers_file_is_missing(stack: Served, client: openai.OpenAI, caller: Caller) -> None:
    """Another tenant's, and another key's of the same tenant."""
    file_id = upload(client, [chat(1, content="secret")])
    with tenant_scope(ALL_TENANTS):
        _, second = issue_key(tenant=caller.tenant, name="second", scopes=("inference",), actor=None)
    for headers in (new_caller().headers, {"Authorization": f"Bearer {second}"}):
        theirs = answers(stack.url, headers, file_id)
        assert [status for status, _ in theirs] == [404] * 4
        assert theirs == answers(stack.url, headers, "file_0123456789012345678901")
        assert httpx.get(f"{stack.url}/v1/files", headers=headers).json()["data"] == []
        assert httpx.get(f"{stack.url}/v1/files?after={file_id}", headers=headers).status_code == 400
    assert client.files.retrieve(file_id).id == file_id


def test_a_key_needs_the_scope(stack: Served) -> None:
    headers = new_caller(scopes=("usage:read", "manage")).headers
    for path in ("files", "batches", "files/x", "files/x/content", "batches/x"):
        assert httpx.get(f"{stack.url}/v1/{path}", headers=headers).status_code == 403
    assert httpx.post(f"{stack.url}/v1/batches/x/cancel", headers=headers).status_code == 403


def test_what_has_expired_is_missing_and_then_gone(client: openai.OpenAI, objects: Path) -> None:
    expiry = {"anchor": "created_at", "seconds": 3600}
    file = client.files.create(file=("a", b"x"), purpose="batch", expires_after=expiry)
    assert file.expires_at - file.created_at == 3600
    kept = upload(client, LINES)
    with tenant_scope(ALL_TENANTS):
        File.objects.filter(id=file.id).update(expires_at=timezone.now() - timedelta(seconds=1))
        with pytest.raises(openai.NotFoundError):
            client.files.content(file.id)
        assert [each.id for each in client.files.list()] == [kept]
        assert remove_expired() == 1
        assert remove_expired() == 0
    assert [path.name for path in objects.rglob("*") if path.is_file()] == [kept]


def test_what_a_batch_reads_stays_until_its_end(client: openai.OpenAI) -> None:
    batch = create(client, LINES)
    with pytest.raises(openai.ConflictError) as caught:
        client.files.delete(batch.input_file_id)
    assert caught.value.code == "file_in_use"
    with tenant_scope(ALL_TENANTS):
        File.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert remove_expired() == 0
    work_off()
    assert client.batches.retrieve(batch.id).request_counts.completed == 2
    with tenant_scope(ALL_TENANTS):
        assert remove_expired() == 1
