"""Adapters registered from where they lie, in the shape of Together's API: POST /v1/models starts a job that fetches
one, GET /v1/jobs/{id} tells how far it is. The job is the version: `adapters.imports` does the work."""

import asyncio
from typing import Any, Final

from django.db import connection
from django.http.response import HttpResponseBase

from controlplane.adapters.imports import start_import
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.queries import version_of
from controlplane.adapters.states import State
from controlplane.errors import InvalidRequest, NotFound
from controlplane.inference.admission import base_model
from controlplane.inference.answers import Json
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.fields import Body, read_text, wrong
from controlplane.inference.replies import json_reply
from tenants.auth import Principal
from tenants.models import Tenant
from tenants.scope import tenant_scope

_STATUS: Final = {
    State.UPLOADING: "Queued",
    State.CHECKING: "Running",
    State.READY: "Complete",
    State.REJECTED: "Failed",
}
_FIELDS: Final = ("model_name", "model_source", "model_type", "base_model", "description")


@endpoint("POST", "adapters:write")
async def register_model(call: Call) -> HttpResponseBase:
    """A new version of the adapter `model_name`, whose files are fetched from `model_source`."""
    name, source, base = _read(call.body())
    version = await asyncio.to_thread(_start, call.principal, name, source, base)
    data = {"job_id": version.id, "model_name": name, "model_id": version.adapter_id, "model_source": _shown(version)}
    return json_reply({"data": data, "message": "Fetching the adapter: GET /v1/jobs/{job_id} tells how far it is."})


def _read(body: Body) -> tuple[str, str, str]:
    for field in body:
        if field not in _FIELDS:
            raise _unknown(field)
    kind = read_text(body, "model_type", longest=20)
    if kind not in (None, "adapter"):
        raise wrong("model_type", kind, 'only adapters are registered: send "adapter", or leave it out')
    read_text(body, "description", longest=1000)
    name, source = _needed(body, "model_name", 200), _needed(body, "model_source", 2000)
    return name, source, read_text(body, "base_model", longest=200) or base_model()


def _unknown(field: str) -> InvalidRequest:
    remedy = f"there is {', '.join(_FIELDS)}"
    if field == "hf_token":
        remedy = "no token is taken: sign the files' addresses and import them by POST /api/v1/adapters/import"
    return InvalidRequest(f"`{field[:50]}` is unknown; {remedy}.", param=field[:50], code="unknown_parameter")


def _needed(body: Body, param: str, longest: int) -> str:
    value = read_text(body, param, longest=longest)
    if not value:
        raise InvalidRequest(f"`{param}` is missing.", param=param, code="missing_required_parameter")
    return value


def _start(principal: Principal, name: str, source: str, base: str) -> AdapterVersion:
    try:
        with tenant_scope(principal.tenant_id):
            tenant = Tenant.objects.get(id=principal.tenant_id)
            return start_import(
                tenant=tenant, actor=principal.key_id, user=None, name=name, base_model=base, source=source
            )
    except InvalidRequest as refused:
        named = {"name": "model_name", "source": "model_source"}
        refused.param = named.get(refused.param or "", refused.param)
        raise
    finally:
        connection.close()  # this thread's own: the door pools its connections elsewhere


@endpoint("GET", "adapters:read")
async def job(call: Call, job_id: str) -> HttpResponseBase:
    """How far a registration is; of an upload, too."""
    return json_reply(await asyncio.to_thread(_job, call.principal, job_id))


def _job(principal: Principal, job_id: str) -> Json:
    try:
        with tenant_scope(principal.tenant_id):
            tenant = Tenant.objects.get(id=principal.tenant_id)
            return _job_body(version_of(tenant, job_id))
    except NotFound:
        raise NotFound(f"There is no job {job_id[:50]}.", code="job_not_found") from None
    finally:
        connection.close()


def _job_body(version: AdapterVersion) -> Json:
    state, name = State(version.state), version.adapter.name
    return {
        "type": "adapter_upload",
        "job_id": version.id,
        "status": _STATUS[state],
        "status_updates": [_update(version, state)],
        "args": {"modelName": name, "modelSource": _shown(version)},
        "created_at": version.created_at.isoformat(),
        "updated_at": version.state_at.isoformat(),
    }


def _update(version: AdapterVersion, state: State) -> Json:
    report: dict[str, Any] = version.report or {}
    problems = [f"{each['code']}: {each['where']}: {each['remedy']}" for each in report.get("problems", ())]
    told = " ".join([report.get("summary") or f"{state.label}.", *problems])
    return {"status": _STATUS[state], "message": told[:2000], "timestamp": version.state_at.isoformat()}


def _shown(version: AdapterVersion) -> str | None:
    return version.source["shown"] if version.source else None
