"""Pages, what a browser may do with them, and what programs get where no page is."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client
from django.test.client import AsyncClient

from controlplane.console import session
from controlplane.logs import RequestIdFilter
from tests.controlplane.conftest import Api, Cast

INDEX = b"<!doctype html><script type=module src=/assets/app-1a2b.js></script>"


@pytest.fixture
def built(settings: Any, tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(INDEX)
    (tmp_path / "assets" / "app-1a2b.js").write_text("console.info(1)")
    settings.FRONTEND_DIR = settings.WHITENOISE_ROOT = tmp_path
    return tmp_path


@pytest.mark.parametrize("path", ["/", "/adapters", "/adapters/adp_x", "/keys", "/apiary", "/sign-in?next=/usage"])
def test_every_address_of_the_console_is_its_page(built: Path, path: str) -> None:
    response = Client().get(path)
    assert (response.status_code, response.content) == (200, INDEX)
    assert response["Cache-Control"] == "no-store"
    assert response.cookies["csrftoken"].value


def test_before_the_console_is_built_it_says_how(settings: Any, tmp_path: Path) -> None:
    settings.FRONTEND_DIR = tmp_path / "none"
    response = Client().get("/")
    assert (response.status_code, response["Content-Type"]) == (503, "text/plain; charset=utf-8")
    assert "npm run build" in response.content.decode()


def test_assets_never_change_and_the_page_always_may(built: Path) -> None:
    response = Client().get("/assets/app-1a2b.js")
    assert response.status_code == 200
    assert response.content == b"console.info(1)"
    assert {"immutable", "public"} <= set(response["Cache-Control"].replace(" ", "").split(","))
    assert Client().get("/assets/gone-9z.js").status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/nope", "/api/nope", "/api", "/v1", "/static/x", "/assets/x.js", "/ws/x"])
def test_programs_get_json_where_nothing_is(built: Path, path: str) -> None:
    response = Client().get(path)
    error = response.json()["error"]
    assert (response.status_code, set(error)) == (404, {"message", "type", "param", "code"})
    assert error["code"] == "unknown_url"


def test_a_page_can_only_be_read() -> None:
    assert Client().post("/adapters").status_code == 405


def test_browsers_are_told_what_our_pages_may_do(built: Path, settings: Any) -> None:
    settings.DOOR_URL = "http://door.example:8001"
    response = Client().get("/", headers={"host": "localhost:8000"})
    policy = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert "script-src" not in policy  # so it is default-src: nothing inline, nothing from elsewhere
    assert policy["connect-src"].split() == [
        "'self'",
        "ws://localhost:8000",
        "wss://localhost:8000",
        "http://door.example:8001",
    ]
    assert policy["frame-ancestors"] == "'none'"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"


def test_a_strange_host_does_not_reach_the_policy(built: Path) -> None:
    response = Client().get("/", headers={"host": "evil.example"})
    assert response.status_code == 400
    assert "evil" not in response["Content-Security-Policy"]


@pytest.mark.django_db
def test_health_asks_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Client().get("/healthz").status_code, Client().get("/healthz").json()) == (200, {"status": "ok"})

    def away() -> None:
        raise OperationalError

    monkeypatch.setattr(connection, "cursor", away)
    response = Client().get("/healthz")
    assert (response.status_code, response.json()) == (503, {"status": "the database does not answer"})


def test_a_failure_of_ours_is_json_without_its_reasons(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(session, "session_body", broken)
    api = Api(client=Client(raise_request_exception=False))
    api.client.force_login(cast.owner)
    response = api.raw("GET", "session")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert b"secret of the house" not in response.content


@pytest.mark.parametrize(("method", "path", "status"), [("PATCH", "keys", 405), ("DELETE", "keys", 405)])
def test_a_method_that_is_not_there_is_json(cast: Cast, method: str, path: str, status: int) -> None:
    api = Api()
    api.client.force_login(cast.owner)
    response = api.raw(method, path)
    assert (response.status_code, set(response.json())) == (status, {"error"})


def test_nobody_is_told_how_to_become_somebody() -> None:
    response = Api().raw("GET", "keys")
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert "Authorization: Bearer vnr_" in response.json()["error"]["message"]


@pytest.mark.parametrize(("sent", "kept"), [("req-1.a:b", True), ("a b", False), ("x" * 81, False), ("", False)])
async def test_each_answer_has_a_request_id(built: Path, sent: str, kept: bool) -> None:
    for response in (Client().get("/", headers={"x-request-id": sent}), await _asynchronously(sent)):
        found = response["x-request-id"]
        assert (found == sent) == kept
        assert kept or found.startswith("req_")


async def test_what_django_logs_of_a_request_carries_its_id(caplog: pytest.LogCaptureFixture) -> None:
    ids: list[str] = []
    caplog.handler.addFilter(lambda record: RequestIdFilter().filter(record) and not ids.append(record.request_id))
    await AsyncClient().get("/api/v1/nope", headers={"x-request-id": "req_mine"})
    assert ids == ["req_mine"]


async def _asynchronously(sent: str) -> Any:
    return await AsyncClient().get("/", headers={"x-request-id": sent})


def test_the_schema_is_whole_and_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", "--format", "openapi-json")
    schema = json.loads(capsys.readouterr().out)
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    bare = [
        operation["operationId"]
        for operation in operations
        for status, answer in operation["responses"].items()
        if status not in {"202", "204"} and "content" not in answer
    ]
    assert bare == []
