"""Registering an adapter from where it lies, in Together's shape."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.states import State
from controlplane.celery import app
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_caller

SOURCE = "acme/pirate-lora"


@pytest.fixture
def manager(stack: Served, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setattr(app, "send_task", lambda *_args, **_more: None)
    return new_caller(scopes=("manage",))


@pytest.fixture
def http(stack: Served, manager: Caller) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{stack.url}/v1", headers=manager.headers, timeout=30) as found:
        yield found


def register(http: httpx.Client, **more: Any) -> httpx.Response:
    return http.post("/models", json={"model_name": "pirate", "model_source": SOURCE, **more})


def test_a_registration_is_an_import_and_its_job_tells_how_far_it_is(http: httpx.Client, manager: Caller) -> None:
    answer = register(http, model_type="adapter", base_model=BASE, description="talks like one")
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert (data["model_name"], data["model_source"]) == ("pirate", SOURCE)
    with tenant_scope(ALL_TENANTS):
        version = AdapterVersion.objects.get(id=data["job_id"])
    assert (version.tenant_id, version.adapter_id, version.state) == (manager.tenant.id, data["model_id"], "uploading")
    problem = {"code": "rank_over_limit", "where": "q_proj", "found": "x", "expected": "y", "remedy": "Train less."}
    for state, report, status, told in (
        (State.UPLOADING, None, "Queued", "Uploading."), (State.CHECKING, None, "Running", "Checking."),
        (State.REJECTED, {"problems": [problem], "summary": "Refused."}, "Failed",
         "Refused. rank_over_limit: q_proj: Train less."),
    ):  # fmt: skip
        with tenant_scope(ALL_TENANTS):
            AdapterVersion.objects.filter(id=version.id).update(state=state, report=report)
        job = http.get(f"/jobs/{version.id}").json()
        assert (job["job_id"], job["status"]) == (version.id, status)
        assert [(each["status"], each["message"]) for each in job["status_updates"]] == [(status, told)]
        assert job["args"] == {"modelName": "pirate", "modelSource": SOURCE}


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"model_name": None}, "model_name"), ({"model_name": "No Name"}, "model_name"),
        ({"model_source": ""}, "model_source"),
        ({"model_source": "file:///etc/passwd"}, "model_source"), ({"model_source": "../x"}, "model_source"),
        ({"model_source": 5}, "model_source"), ({"model_type": "model"}, "model_type"),
        ({"base_model": "other"}, "base_model"),
        ({"hf_token": "hf_secret"}, "hf_token"), ({"lora_model": "x"}, "lora_model"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_its_field(http: httpx.Client, wrong: dict[str, Any], param: str) -> None:
    answer = register(http, **wrong)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    assert "hf_secret" not in answer.text
    with tenant_scope(ALL_TENANTS):
        assert not AdapterVersion.objects.filter(adapter__name="pirate").exists()


def test_only_who_manages_registers_and_only_their_own_jobs_are_there(
    stack: Served, http: httpx.Client, manager: Caller
) -> None:
    job_id = register(http).json()["data"]["job_id"]
    asker, stranger = new_caller(), new_caller(scopes=("manage",))
    body = {"model_name": "x", "model_source": SOURCE}
    assert httpx.post(f"{stack.url}/v1/models", headers=asker.headers, json=body).status_code == 403
    foreign = httpx.get(f"{stack.url}/v1/jobs/{job_id}", headers=stranger.headers)
    missing = httpx.get(f"{stack.url}/v1/jobs/adv_none", headers=stranger.headers)
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.json()["error"]["code"] == missing.json()["error"]["code"] == "job_not_found"
    assert http.get("/jobs/%00").status_code == 404
