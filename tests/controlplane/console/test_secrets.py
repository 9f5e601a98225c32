"""A key is shown once. After that it is nowhere: no table, no log, no record, no error, no event."""

import logging
from typing import Any

import pytest
from django.db import connection
from django.test import Client, TestCase

from controlplane.console import key_events, keys
from tests.controlplane.conftest import PASSWORD, Api, Cast, with_key


def every_table() -> str:
    """All rows of all tables, as text."""
    with connection.cursor() as cursor:
        dumps = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{table}" t')
            dumps += [row[0] for row in cursor.fetchall()]
    return "\n".join(dumps)


def test_an_issued_key_is_nowhere_afterwards(
    cast: Cast, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    events: list[Any] = []
    monkeypatch.setattr(key_events, "publish", lambda **event: events.append(event))
    owner = Api(client=Client(raise_request_exception=False))
    owner.client.force_login(cast.owner)
    with TestCase.captureOnCommitCallbacks(execute=True):
        raw = owner.post("keys", {"name": "ci", "scopes": ["manage"]})[1]["key"]
        playground = owner.post("playground/key")[1]["key"]
    told = [answer for key in (raw, playground) for answer in answers_to(with_key(key), monkeypatch)]
    key_id = next(row["id"] for row in owner.get("keys")[1]["data"] if row["name"] == "ci")
    owner.post(f"keys/{key_id}/revoke")
    told += [owner.get("keys"), with_key(raw).get("keys"), with_key(raw[:-1]).get("keys")]
    places = {"tables": every_table(), "log": caplog.text, "answers": str(told), "events": str(events)}
    found = [place for place, text in places.items() for key in (raw, playground) if key.split("_")[2][:32] in text]
    assert found == []
    assert "ci" in places["tables"]  # the dump does see what is there
    assert events == [{"tenant_id": cast.acme.id, "event": "key.changed", "data": {"id": key_id}}] * 2


def answers_to(program: Api, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A good call, refused ones of several kinds, and one that breaks us."""
    program.client.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr(keys, "key_body", _broken)
        broken = program.get("keys")
    return [
        program.get("keys"),
        program.post("keys", {"name": "", "scopes": []}),
        program.get("adapters/adp_none"),
        program.get("operator/tenants"),
        program.get("keys", headers={"X-Veneer-Tenant": "ten_other"}),
        broken,
    ]


def _broken(*_: Any) -> None:
    raise RuntimeError("broken")


def test_a_password_is_nowhere(cast: Cast, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bodies = [
        Api().post("session", {"email": "owner@acme.example", "password": PASSWORD})[1],
        Api().post("session", {"email": "owner@acme.example", "password": PASSWORD + "!"})[1],
    ]
    for place in (every_table(), caplog.text, str(bodies)):
        assert PASSWORD not in place
    assert "argon2" not in str(bodies)
