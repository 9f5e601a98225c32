"""Holds are renewed whatever went wrong the last time: an answer outlives failures to say that it runs."""

import httpx
import psycopg
import pytest
from psycopg_pool import PoolTimeout

from controlplane.inference import resources
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for

ASKED = {"model": BASE, "messages": [{"role": "user", "content": "hello"}], "stream": True}


@pytest.mark.parametrize(
    "error", [psycopg.InternalError, psycopg.InterfaceError, psycopg.OperationalError, PoolTimeout]
)
def test_a_failure_is_not_the_last_word(
    stack: Served, http: httpx.Client, caller: Caller, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    renew, failures = resources.renew_holds, []

    def fails_once(**named: object) -> object:
        if not failures:
            failures.append(named)
            raise error("no")
        return renew(**named)  # type: ignore[arg-type]

    monkeypatch.setattr(resources, "renew_holds", fails_once)
    stack.engine.script = Script(pieces=("a", "b"), hang_after=1)
    with http.stream("POST", "/chat/completions", json=ASKED):
        [hold] = holds_of(caller)
        wait_for(lambda: holds_of(caller)[0].expires_at > hold.expires_at, "the hold to be renewed after all")
    assert failures
    wait_for(lambda: usage_of(caller), "the settlement")
    wait_for(lambda: stack.door().held == set(), "nothing to renew any more")
