"""Parts in any order, twice, overlapping, after a kill, from two sides at once: what is acknowledged is stored."""

import hashlib
import os
import random
import threading
from collections.abc import Callable
from contextvars import copy_context
from io import BytesIO
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from controlplane.adapters import uploads
from controlplane.adapters.models import AdapterVersion, UploadPart
from controlplane.adapters.staging import staging_folder
from controlplane.adapters.uploads import DeclaredFile, finish_upload, start_upload, store_upload_part
from controlplane.errors import ApiError, Conflict
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.controlplane.adapters.conftest import start
from tests.controlplane.adapters.peft_folder import BASE, PeftFolder, peft_folder
from tests.controlplane.conftest import Api, Cast

WEIGHTS = "adapter_model.safetensors"
CONTENT = random.Random(7).randbytes(257)
CONFIG = b"{}"


def declared(name: str, content: bytes) -> DeclaredFile:
    return DeclaredFile(name, len(content), hashlib.sha256(content).hexdigest())


def new_version(tenant: Tenant) -> AdapterVersion:
    files = [declared("adapter_config.json", CONFIG), declared(WEIGHTS, CONTENT)]
    return start_upload(tenant=tenant, actor="usr_x", user=None, name="a", base_model=BASE, files=files)


def store(version: AdapterVersion, part: bytes, offset: int, name: str = WEIGHTS) -> list[tuple[int, int]]:
    ranges = store_upload_part(
        tenant=version.tenant,
        version_id=version.id,
        name=name,
        offset=offset,
        length=len(part),
        read=BytesIO(part).read,
    )
    return [tuple(r) for r in ranges]


def stored_bytes(version: AdapterVersion) -> dict[int, int]:
    """What the database says is stored, as the disk has it: value by position."""
    content = (staging_folder(version.id) / WEIGHTS).read_bytes()
    parts = UploadPart.objects.filter(file__version=version, file__name=WEIGHTS)
    return {at: content[at] for part in parts for at in range(part.start, part.end)}


class Killed(BaseException):
    """The process is gone, wherever it was."""


slices = st.lists(
    st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, len(CONTENT)), st.sampled_from(["ok", "ok", "killed"])),
    max_size=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(slices)
def test_parts_in_any_order_twice_and_with_kills_between(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, sent: list[tuple[int, int, str]]
) -> None:
    with transaction.atomic():
        version = new_version(cast.acme)
        acknowledged: set[int] = set()
        for offset, length, fate in sent:
            part = CONTENT[offset : offset + length]
            if fate == "killed":  # after the write, before the row: the worst moment
                with monkeypatch.context() as patch:
                    patch.setattr(uploads, "record_part", _killed)
                    with pytest.raises(Killed):
                        store(version, part, offset)
            else:
                ranges = store(version, part, offset)
                acknowledged |= set(range(offset, offset + len(part)))
                assert {at for a, b in ranges for at in range(a, b)} == acknowledged
            assert stored_bytes(version) == {at: CONTENT[at] for at in acknowledged} if acknowledged else True
        _complete(version, acknowledged)
        transaction.set_rollback(True)


def _killed(*_: Any) -> None:
    raise Killed


def _complete(version: AdapterVersion, acknowledged: set[int]) -> None:
    """The client resumes from what it is told is missing, last first, and the digest closes it."""
    with pytest.raises(Conflict) as refused:
        finish_upload(tenant=version.tenant, actor="usr_x", version_id=version.id)
    missing = refused.value.details["missing"]
    assert missing.pop("adapter_config.json") == [(0, len(CONFIG))]
    gaps = missing.pop(WEIGHTS, [])
    assert {at for start, end in gaps for at in range(start, end)} == set(range(len(CONTENT))) - acknowledged
    for first, end in reversed(gaps):
        store(version, CONTENT[first:end], first)
    store(version, CONFIG, 0, "adapter_config.json")
    assert finish_upload(tenant=version.tenant, actor="usr_x", version_id=version.id).state == "checking"


def test_the_bytes_are_on_the_disk_before_they_are_recorded(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    version = new_version(cast.acme)
    order: list[str] = []
    fsync, record = os.fsync, uploads.record_part

    def watched_fsync(descriptor: int) -> None:
        order.append("fsync")
        fsync(descriptor)

    def watched_record(*args: Any) -> Any:
        order.append("record")
        return record(*args)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(uploads, "record_part", watched_record)
    store(version, CONTENT, 0)
    assert order[-1] == "record"
    assert "fsync" in order


def test_an_overlap_that_disagrees_is_refused_and_changes_nothing(cast: Cast) -> None:
    version = new_version(cast.acme)
    store(version, CONTENT[100:200], 100)
    lie = bytearray(CONTENT[50:150])
    lie[99] ^= 1  # the last byte of the overlap
    with pytest.raises(Conflict) as refused:
        store(version, bytes(lie), 50)
    assert refused.value.code == "part_conflict"
    assert "bytes 100-150" in refused.value.message
    assert stored_bytes(version) == {at: CONTENT[at] for at in range(100, 200)}
    assert store(version, CONTENT[50:150], 50) == [(50, 200)]


def test_a_body_that_ends_early_stores_nothing(cast: Cast) -> None:
    version = new_version(cast.acme)
    with pytest.raises(ApiError) as refused, transaction.atomic():
        store_upload_part(
            tenant=cast.acme, version_id=version.id, name=WEIGHTS, offset=0, length=100, read=BytesIO(CONTENT[:60]).read
        )
    assert (refused.value.code, "40 bytes early" in refused.value.message) == ("part_cut_short", True)
    assert stored_bytes(version) == {}


def test_memory_stays_bounded_however_large_the_part(cast: Cast) -> None:
    version = new_version(cast.acme)
    asked: list[int] = []
    stream = BytesIO(CONTENT)

    def read(size: int) -> bytes:
        asked.append(size)
        return stream.read(size)

    store_upload_part(tenant=cast.acme, version_id=version.id, name=WEIGHTS, offset=0, length=257, read=read)
    assert max(asked) <= uploads.CHUNK


# --- over HTTP: what is refused, and how it is said ---------------------------------------------------------------


@pytest.fixture
def folder() -> PeftFolder:
    return peft_folder()


@pytest.fixture
def version(owner: Api, folder: PeftFolder) -> dict[str, Any]:
    return start(owner, "pirate", folder)


@pytest.mark.parametrize(
    ("query", "body", "status", "code", "param"),
    [
        ("", b"x", 400, "invalid_request", "offset"),
        ("?offset=", b"x", 400, "invalid_request", "offset"),
        ("?offset=-1", b"x", 400, "invalid_request", "offset"),
        ("?offset=1.5", b"x", 400, "invalid_request", "offset"),
        ("?offset=9999999999999999", b"x", 400, "invalid_request", "offset"),
        ("?offset=999999999999999", b"x", 413, "beyond_declared_size", "offset"),
    ],
)
def test_a_part_that_cannot_be_is_refused(
    owner: Api, version: dict[str, Any], query: str, body: bytes, status: int, code: str, param: str | None
) -> None:
    found, answer = owner.put(f"versions/{version['id']}/files/{WEIGHTS}{query}", body)
    assert (found, answer["error"]["code"], answer["error"]["param"]) == (status, code, param)


def test_one_byte_over_the_declared_size_is_refused(owner: Api, version: dict[str, Any], folder: PeftFolder) -> None:
    content = folder.files[WEIGHTS] + b"!"
    status, body = owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=0", content)
    assert (status, body["error"]["code"]) == (413, "beyond_declared_size")
    assert owner.get(f"versions/{version['id']}")[1]["files"][1]["received_bytes"] == 0


def test_a_part_over_the_limit_is_refused(owner: Api, version: dict[str, Any], settings: Settings) -> None:
    settings.MAX_PART_BYTES = 10
    status, body = owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=0", b"x" * 11)
    assert (status, body["error"]["code"]) == (413, "part_too_large")


def test_a_part_without_a_length_is_refused(owner: Api, version: dict[str, Any]) -> None:
    path = f"versions/{version['id']}/files/{WEIGHTS}?offset=0"
    status, body = owner.put(path, b"abc", headers={"Content-Length": ""}, CONTENT_LENGTH="")
    assert (status, body["error"]["code"]) == (411, "length_required")


@pytest.mark.parametrize("name", ["adapter_model.bin", "nope.json", "..%2f..%2fetc%2fpasswd", "adapter_config.json%00"])
def test_a_file_that_was_not_declared_is_missing(owner: Api, version: dict[str, Any], name: str) -> None:
    status, body = owner.put(f"versions/{version['id']}/files/{name}?offset=0", b"x")
    assert status == 404, body


def test_an_empty_part_is_refused(owner: Api, version: dict[str, Any]) -> None:
    status, body = owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=0", b"", CONTENT_LENGTH="0")
    assert (status, body["error"]["code"]) == (400, "empty_part")


def test_any_content_type_will_do(owner: Api, version: dict[str, Any]) -> None:
    for kind in (
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        response = owner.client.put(
            f"/api/v1/versions/{version['id']}/files/adapter_config.json?offset=0", data=b'{"pe', content_type=kind
        )
        assert (response.status_code, response.json()) == (200, {"received_bytes": 4, "ranges": [[0, 4]]})


def test_finishing_too_early_names_what_is_missing(owner: Api, version: dict[str, Any], folder: PeftFolder) -> None:
    size = len(folder.files[WEIGHTS])
    owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=10", folder.files[WEIGHTS][10:20])
    status, body = owner.post(f"versions/{version['id']}/finish")
    assert (status, body["error"]["code"]) == (409, "upload_incomplete")
    config = len(folder.files["adapter_config.json"])
    assert body["error"]["missing"] == {"adapter_config.json": [[0, config]], WEIGHTS: [[0, 10], [20, size]]}
    assert f"{WEIGHTS} lacks 0-10, 20-{size}" in body["error"]["message"]
    assert owner.get(f"versions/{version['id']}")[1]["state"] == "uploading"


def test_a_wrong_digest_drops_the_file_which_may_then_be_sent_again(owner: Api, folder: PeftFolder) -> None:
    version = start(owner, "pirate", folder)
    damaged = bytes(len(folder.files[WEIGHTS]))
    owner.put(f"versions/{version['id']}/files/adapter_config.json?offset=0", folder.files["adapter_config.json"])
    owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=0", damaged)
    status, body = owner.post(f"versions/{version['id']}/finish")
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "digest_mismatch", WEIGHTS)
    received = {file["name"]: file["received_bytes"] for file in owner.get(f"versions/{version['id']}")[1]["files"]}
    assert received == {"adapter_config.json": len(folder.files["adapter_config.json"]), WEIGHTS: 0}
    owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=0", folder.files[WEIGHTS])
    assert owner.post(f"versions/{version['id']}/finish")[0] == 202


def test_after_the_finish_no_more_is_taken(owner: Api, folder: PeftFolder) -> None:
    version = start(owner, "pirate", folder)
    for name, content in folder.files.items():
        owner.put(f"versions/{version['id']}/files/{name}?offset=0", content)
    first = owner.post(f"versions/{version['id']}/finish")
    assert first[0] == 202
    assert owner.post(f"versions/{version['id']}/finish") == first
    status, body = owner.put(f"versions/{version['id']}/files/{WEIGHTS}?offset=0", folder.files[WEIGHTS])
    assert (status, body["error"]["code"]) == (409, "upload_finished")


# --- two at once, each in a transaction of its own ----------------------------------------------------------------


def run_together(*jobs: Callable[[], Any]) -> list[Any]:
    """The result, or the exception, of each."""
    results: list[Any] = [None] * len(jobs)
    barrier = threading.Barrier(len(jobs))

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = jobs[index]()
        except ApiError as exc:
            results[index] = exc
        finally:
            connection.close()

    threads = [threading.Thread(target=copy_context().run, args=(run, index)) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
def test_of_two_different_parts_at_one_offset_exactly_one_wins(places: Any) -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    version = new_version(tenant)
    other = bytes(byte ^ 255 for byte in CONTENT)
    results = run_together(lambda: store(version, CONTENT, 0), lambda: store(version, other, 0))
    refused = [result for result in results if isinstance(result, Conflict)]
    assert [exc.code for exc in refused] == ["part_conflict"]
    winner = CONTENT if results[1] is refused[0] else other
    assert (staging_folder(version.id) / WEIGHTS).read_bytes() == winner


@pytest.mark.django_db(transaction=True)
def test_the_same_part_twice_at_once_is_stored_once_and_both_are_told(places: Any) -> None:
    version = new_version(Tenant.objects.create(slug="acme", name="Acme"))
    halves = (CONTENT[:200], 0), (CONTENT[100:], 100)
    results = run_together(*(lambda p=part, o=offset: store(version, p, o) for part, offset in halves * 2))
    assert (0, len(CONTENT)) in [ranges[0] for ranges in results]
    assert stored_bytes(version) == dict(enumerate(CONTENT))
    assert UploadPart.objects.filter(file__version=version).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_finishes_at_once_send_one_check(places: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    version = new_version(Tenant.objects.create(slug="acme", name="Acme"))
    store(version, CONTENT, 0)
    store(version, CONFIG, 0, "adapter_config.json")
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(uploads, "enqueue", lambda task, version_id: sent.append((task, version_id)))

    def finish() -> str:
        return finish_upload(tenant=version.tenant, actor="usr_x", version_id=version.id).state

    assert run_together(finish, finish, finish) == ["checking"] * 3
    assert sent == [("adapters.check_version", version.id)]


@pytest.mark.django_db(transaction=True)
def test_versions_started_at_once_get_numbers_of_their_own(places: Any) -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    versions = run_together(*[lambda: new_version(tenant)] * 4)
    assert sorted(version.number for version in versions) == [1, 2, 3, 4]
    with tenant_scope(tenant.id):
        assert AdapterVersion.objects.values("adapter_id").distinct().count() == 1
