"""Imports: from a folder, from listed files, from S3 and a hub; resumed, refused, and kept from reaching inwards."""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import TestCase
from django.utils import timezone
from pytest_django import Settings

from controlplane.adapters import imports, remote
from controlplane.adapters.imports import MAX_FRUITLESS, STALE_AFTER
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.staging import staging_folder
from controlplane.adapters.tasks import fetch_version, resume_imports
from controlplane.addresses import read_networks
from controlplane.celery import app
from controlplane.fetcher import Fetcher
from tenants.models import AuditRow
from tenants.scope import tenant_scope
from tests.controlplane.adapters.conftest import check
from tests.controlplane.adapters.peft_folder import BASE, PeftFolder, peft_folder, sharded_folder
from tests.controlplane.conftest import Api
from tests.controlplane.web import Web, redirect

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """`files.test` and `hub.test` lie here; every other name where it says."""

    def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host.endswith(".test") else [host]

    monkeypatch.setattr(remote, "new_fetcher", lambda: Fetcher(read_networks("127.0.0.1/32"), 20, resolve))
    with Web() as found:
        yield found


def put(web: Web, below: str, folder: PeftFolder) -> None:
    web.files |= {f"{below}/{name}": content for name, content in folder.files.items()}


def start(owner: Api, source: Any, status: int = 202) -> Any:
    found, body = owner.post("adapters/import", {"name": "pirate", "base_model": BASE, "source": source})
    assert found == status, body
    return body["version"] if status == 202 else body["error"]


def fetched(owner: Api, version: dict[str, Any]) -> dict[str, Any]:
    with TestCase.captureOnCommitCallbacks(execute=True):
        fetch_version(version["id"])
    return owner.get(f"versions/{version['id']}")[1]


def check_ready(owner: Api, version: dict[str, Any], folder: PeftFolder, places: Path) -> None:
    found = fetched(owner, version)
    assert found["state"] == "checking", found["report"]
    sums = {file["name"]: file["sha256"] for file in found["files"]}
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in folder.files.items()}
    assert found["size_bytes"] == sum(map(len, folder.files.values()))
    with TestCase.captureOnCommitCallbacks(execute=True):
        check(version["id"])
    found = owner.get(f"versions/{version['id']}")[1]
    assert found["state"] == "ready"
    published = places / "objects" / "adapters" / found["digest"]
    assert {path.name: path.read_bytes() for path in published.iterdir()} == folder.files


@pytest.mark.parametrize("folder", [peft_folder(), sharded_folder()], ids=["one file", "shards"])
def test_a_folder_is_fetched_by_the_names_of_its_files(owner: Api, web: Web, places: Path, folder: PeftFolder) -> None:
    put(web, "/models/pirate", folder)
    version = start(owner, web.url("/models/pirate/"))
    assert (version["state"], version["source"]) == ("uploading", web.url("/models/pirate/"))
    check_ready(owner, version, folder, places)


def test_listed_files_are_fetched_and_their_signatures_never_shown(owner: Api, web: Web, places: Path) -> None:
    folder = peft_folder()
    put(web, "/x", folder)
    version = start(owner, [web.url(f"/x/{name}?sig=very-secret") for name in folder.files])
    assert version["source"] == web.url("/x/")
    with TestCase.captureOnCommitCallbacks(execute=True):
        fetch_version(version["id"])
    assert {path.partition("?")[2] for _, path, _ in web.asked} == {"sig=very-secret"}
    with tenant_scope("*"):
        assert "very-secret" not in json.dumps(AdapterVersion.objects.values("source", "report").get())
    assert not [row for row in AuditRow.objects.values_list("details", flat=True) if "very-secret" in json.dumps(row)]
    check(version["id"])


def test_a_hub_id_is_fetched_from_the_first_mirror_that_has_it(
    owner: Api, web: Web, places: Path, settings: Settings
) -> None:
    folder = peft_folder()
    settings.HUB_URLS = [web.url("/empty", "hub.test"), web.url("/mirror", "hub.test")]
    put(web, "/mirror/org/pirate.lora/resolve/v1.0", folder)
    version = start(owner, "org/pirate.lora@v1.0")
    assert version["source"] == "org/pirate.lora@v1.0"
    check_ready(owner, version, folder, places)


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_prefix_of_s3_is_fetched(
    owner: Api, web: Web, places: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, is_signed: bool
) -> None:
    """Signed for the operator's buckets alone: the credentials of others' are nobody's."""
    folder = peft_folder()
    put(web, "/bucket/some/prefix", folder)
    signed: list[bool] = []
    serve = web._serve
    monkeypatch.setattr(web, "_serve", lambda call: (signed.append("Authorization" in call.headers), serve(call)))
    settings.S3_URL = f"http://127.0.0.1:{web.port}"
    settings.S3_BUCKETS = ["bucket"] if is_signed else ["another"]
    settings.S3_KEY_ID, settings.S3_SECRET = "id", "very-secret"
    check_ready(owner, start(owner, "s3://bucket/some/prefix/"), folder, places)
    assert set(signed) == {is_signed}


@pytest.mark.parametrize(
    "source",
    [
        "", "org", "org/", "/x", "org/name@", "org/../x", "org/name/more", "org/na me", "../../etc", "org/name@../x",
        7, None, {}, [], [""], [[]], ["https://files.test/a.bin"], ["https://files.test/adapter_config.json"], "ftp://files.test/x",
        "file:///etc/passwd", "https://u:p@files.test/x", "https://127.1/x", "https://0x7f000001/", "https://files.test/a?b=c",
        "https://files.test/x/adapter_model.safetensors", "s3://", "s3://B/x", "s3://../x", "s3://bucket/../x", "s3://bucket/a?b",
        "https://files.test/\x00", "https://①.test/", ["https://files.test/x/adapter_config.json"] * 2, "x" * 5000,
        ["https://files.test/x/..%2fadapter_config.json", "https://files.test/x/adapter_model.safetensors"],
        [f"https://files.test/{i}/adapter_config.json" for i in range(80)],
    ],
    ids=lambda source: repr(source)[:50],
)  # fmt: skip
def test_a_source_that_is_none_starts_nothing(owner: Api, source: Any) -> None:
    error = start(owner, source, 400)
    assert error["param"].startswith("source")
    assert "very" not in error["message"] or len(error["message"]) < 600
    assert owner.get("adapters")[1]["data"] == []


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/x",
        "http://[::ffff:127.0.0.1]/x",
        "file:///etc/passwd",
    ],
)
def test_nothing_inward_is_reached_directly_or_by_a_redirect(owner: Api, web: Web, places: Path, target: str) -> None:
    web.pages[f"/x/{CONFIG}"] = redirect(target)
    found = fetched(owner, start(owner, web.url("/x")))
    assert found["state"] == "rejected"
    [problem] = found["report"]["problems"]
    assert problem["code"] == "import_refused"
    assert problem["found"].startswith(CONFIG)
    assert len(web.asked) == 1
    assert not staging_folder(found["id"]).exists()
    if target.startswith("http"):
        assert fetched(owner, start(owner, target))["report"]["problems"][0]["code"] == "import_refused"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({f"/x/{CONFIG}": None}, "answered 404"),
        ({f"/x/{WEIGHTS}": None}, "neither"),
        ({f"/x/{CONFIG}": b"x" * (1 << 21)}, "may be 1048576"),
        ({f"/x/{CONFIG}": b""}, "0 bytes"),
        (
            {f"/x/{WEIGHTS}": None, f"/x/{WEIGHTS}.index.json": b'{"weight_map": {"a": "../../etc/passwd"}}'},
            "other files",
        ),
        ({f"/x/{WEIGHTS}": None, f"/x/{WEIGHTS}.index.json": b"[]"}, "not an index"),
        ({f"/x/{WEIGHTS}": b"x" * 3_000_000}, "may be"),
    ],
)
def test_what_is_not_an_adapter_is_refused(
    owner: Api, web: Web, settings: Settings, change: dict[str, bytes | None], said: str
) -> None:
    settings.MAX_ADAPTER_BYTES = 2_500_000
    put(web, "/x", peft_folder())
    web.files |= {path: content for path, content in change.items() if content is not None}
    for path in [path for path, content in change.items() if content is None]:
        del web.files[path]
    found = fetched(owner, start(owner, web.url("/x")))
    assert found["state"] == "rejected"
    assert said in found["report"]["problems"][0]["found"]


def test_a_file_of_unknown_length_is_refused(owner: Api, web: Web) -> None:
    def endless(call: Any) -> None:
        call.send_response(200)
        call.end_headers()
        call.wfile.write(b"{}" * 10)

    web.pages[f"/x/{CONFIG}"] = endless
    assert "how long" in fetched(owner, start(owner, web.url("/x")))["report"]["problems"][0]["found"]


def cut_after(content: bytes, most: int) -> Any:
    """Declares all of it, sends a part, hangs up."""

    def page(call: Any) -> None:
        call.send_response(200)
        call.send_header("ETag", f'"{hash(content):x}"')
        call.send_header("Content-Length", str(len(content)))
        call.end_headers()
        call.wfile.write(content[:most])

    return page


@pytest.mark.parametrize("most", [0, 1, 1000, 2047])
def test_an_import_that_broke_off_goes_on_where_it_was(owner: Api, web: Web, places: Path, most: int) -> None:
    folder = peft_folder()
    put(web, "/x", folder)
    web.pages[f"/x/{WEIGHTS}"] = cut_after(folder.files[WEIGHTS], most)
    version = start(owner, web.url("/x"))
    found = fetched(owner, version)
    assert found["state"] == "uploading"
    got = {file["name"]: file["received_bytes"] for file in found["files"]}
    assert got == {CONFIG: len(folder.files[CONFIG]), WEIGHTS: most}
    web.pages.clear()
    web.asked.clear()
    check_ready(owner, version, folder, places)
    assert [asked for _, _, asked in web.asked] == [f"bytes={most}-" if most else None]


def test_a_file_that_changed_meanwhile_is_fetched_anew(owner: Api, web: Web, places: Path) -> None:
    old, new = peft_folder(seed=1), peft_folder(seed=2)
    put(web, "/x", new)
    web.pages[f"/x/{WEIGHTS}"] = cut_after(old.files[WEIGHTS], 1000)
    version = start(owner, web.url("/x"))
    assert fetched(owner, version)["state"] == "uploading"
    web.pages.clear()
    check_ready(owner, version, new, places)


def test_a_server_without_ranges_is_read_from_the_start(owner: Api, web: Web, places: Path) -> None:
    folder = peft_folder()
    put(web, "/x", folder)
    web.pages[f"/x/{WEIGHTS}"] = cut_after(folder.files[WEIGHTS], 1000)
    version = start(owner, web.url("/x"))
    assert fetched(owner, version)["state"] == "uploading"
    web.pages.clear()
    web.accepts_ranges = False
    check_ready(owner, version, folder, places)


def test_one_that_never_gets_anywhere_is_given_up(owner: Api, web: Web) -> None:
    web.pages[f"/x/{CONFIG}"] = lambda call: call.send_error(503)
    version = start(owner, web.url("/x"))
    for _ in range(MAX_FRUITLESS):
        assert fetched(owner, version)["state"] == "uploading"
    found = fetched(owner, version)
    assert (found["state"], found["report"]["problems"][0]["code"]) == ("rejected", "import_refused")


def test_it_is_sent_once_and_again_when_nobody_is_at_it(owner: Api, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: sent.append((name, args)))
    with TestCase.captureOnCommitCallbacks(execute=True):
        version = start(owner, web.url("/x"))
        resume_imports()
    assert sent == [("adapters.fetch_version", (version["id"],))]
    with tenant_scope("*"):
        AdapterVersion.objects.update(state_at=timezone.now() - STALE_AFTER - timedelta(seconds=1))
    with TestCase.captureOnCommitCallbacks(execute=True):
        resume_imports()
        resume_imports()
    assert len(sent) == 2


def test_one_deleted_while_it_is_fetched_leaves_nothing(owner: Api, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, "/x", peft_folder())
    version = start(owner, web.url("/x"))
    adapter = owner.get("adapters")[1]["data"][0]["id"]
    store = imports.store_part

    def deleted_meanwhile(*args: Any) -> int:
        done = store(*args)
        with TestCase.captureOnCommitCallbacks(execute=True):
            assert owner.delete(f"adapters/{adapter}")[0] == 204
        return done

    monkeypatch.setattr(imports, "store_part", deleted_meanwhile)
    fetch_version(version["id"])
    assert owner.get(f"versions/{version['id']}")[0] == 404
    assert not staging_folder(version["id"]).exists()


def test_nothing_can_be_sent_for_an_import(owner: Api, web: Web) -> None:
    put(web, "/x", peft_folder())
    web.pages[f"/x/{WEIGHTS}"] = lambda call: call.send_error(503)
    version = start(owner, web.url("/x"))
    fetched(owner, version)
    status, body = owner.put(f"versions/{version['id']}/files/{CONFIG}?offset=0", b"{}")
    assert (status, body["error"]["code"]) == (409, "is_import")
    status, body = owner.post(f"versions/{version['id']}/finish")
    assert (status, body["error"]["code"]) == (409, "is_import")


def test_what_a_tenant_may_store_holds_for_imports(owner: Api, web: Web, settings: Settings) -> None:
    settings.MAX_STORED_BYTES_PER_TENANT = 1000
    put(web, "/x", peft_folder())
    found = fetched(owner, start(owner, web.url("/x")))
    assert found["state"] == "rejected"
    assert "may have 1000" in found["report"]["problems"][0]["found"]
