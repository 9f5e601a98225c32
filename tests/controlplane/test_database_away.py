"""A database that is away for a moment is no bug of ours: whoever asks is told to ask again, wherever it was missed."""

from typing import Any

import pytest
from django.contrib.auth import middleware
from django.db import InterfaceError, OperationalError, ProgrammingError

from controlplane.billing import api
from tests.controlplane.conftest import Api

AWAY = [OperationalError("terminating connection: secret-host"), InterfaceError("the connection is closed")]


def fails(error: Exception) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


@pytest.mark.parametrize("error", AWAY)
@pytest.mark.parametrize("where", [(api, "grants_of"), (middleware, "get_user")], ids=["in a view", "before any view"])
def test_it_is_a_503_that_says_when_to_come_back(
    owner: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, where: tuple[Any, str]
) -> None:
    monkeypatch.setattr(*where, fails(error))
    owner.client.raise_request_exception = False
    response = owner.raw("GET", "grants")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
    assert response.json()["error"]["code"] == "database_unavailable"
    assert "secret-host" not in response.content.decode()


def test_our_own_bug_stays_one(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "grants_of", fails(ProgrammingError("no such column")))
    owner.client.raise_request_exception = False
    assert owner.raw("GET", "grants").status_code == 500
