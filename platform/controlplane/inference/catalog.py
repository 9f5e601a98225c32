"""/v1/models: what this key may call, by the names it may use."""

import asyncio

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from controlplane.adapters.deletion import delete_adapter, delete_version
from controlplane.adapters.queries import ListedModel, ResolvedAdapter, listed_models, resolve_model
from controlplane.inference.admission import base_model, check_allowed, model_not_found
from controlplane.inference.answers import Json
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.registrations import register_model
from controlplane.inference.replies import json_reply
from tenants.auth import Principal
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_async


@csrf_exempt
async def models(request: HttpRequest) -> HttpResponseBase:
    """GET or POST /v1/models."""
    return await (register_model if request.method == "POST" else list_models)(request)


@endpoint("GET", "inference")
async def list_models(call: Call) -> HttpResponseBase:
    tenant_id = call.principal.tenant_id
    listed = await run_async(call.door.pool, listed_models(tenant_id=tenant_id), tenant=tenant_id)
    adapters = [
        _adapter_card(found.id, found.version_id, found.owner or call.principal.tenant_slug, _seconds(found))
        for found in listed
        if found.base_model == base_model() and call.principal.may_use(found.id)
    ]
    base = [_base_card()] if call.principal.may_use(base_model()) else []
    return json_reply({"object": "list", "data": [*base, *adapters]})


@csrf_exempt
async def model(request: HttpRequest, name: str) -> HttpResponseBase:
    """GET or DELETE /v1/models/{name}."""
    view = delete_model if request.method == "DELETE" else get_model
    return await view(request, name)


@endpoint("GET", "inference")
async def get_model(call: Call, name: str) -> HttpResponseBase:
    check_allowed(call.principal, name)
    if name == base_model():
        return json_reply(_base_card())
    tenant_id = call.principal.tenant_id
    found = await run_async(call.door.pool, resolve_model(tenant_id=tenant_id, model=name, pick=0.0), tenant=tenant_id)
    if found is None or found.base_model != base_model():
        raise model_not_found(name)
    listed = await run_async(call.door.pool, listed_models(tenant_id=tenant_id), tenant=tenant_id)
    same = next((each for each in listed if each.id == name.partition("@")[0]), None)
    owner = (same and same.owner) or call.principal.tenant_slug
    return json_reply(_adapter_card(name, found.version_id, owner, _seconds(same) if same else 0))


@endpoint("DELETE", "adapters:write")
async def delete_model(call: Call, name: str) -> HttpResponseBase:
    """Retire the tenant's own adapter; of `name@2`, that version. As in the management API, what is shared, pinned or
    answered with is not deleted in passing."""
    check_allowed(call.principal, name)
    own = "/" not in name and name != base_model()
    tenant_id = call.principal.tenant_id
    plan = resolve_model(tenant_id=tenant_id, model=name, pick=0.0)
    found = await run_async(call.door.pool, plan, tenant=tenant_id) if own else None
    if found is None:
        raise model_not_found(name)
    await asyncio.to_thread(_delete, call.principal, found, "@" in name)
    return json_reply({"id": name, "object": "model", "deleted": True})


def _delete(principal: Principal, found: ResolvedAdapter, is_version: bool) -> None:
    try:
        with tenant_scope(principal.tenant_id):
            tenant = Tenant.objects.get(id=principal.tenant_id)
            if is_version:
                delete_version(tenant=tenant, actor=principal.key_id, version_id=found.version_id)
            else:
                delete_adapter(tenant=tenant, actor=principal.key_id, adapter_id=found.adapter_id)
    finally:
        connection.close()  # this thread's own: the door pools its connections elsewhere


def _seconds(found: ListedModel) -> int:
    return int(found.created.timestamp())


def _base_card() -> Json:
    try:
        created = int(settings.MODEL_DIR.stat().st_mtime)
    except OSError:  # the engine may lie on another machine
        created = 0
    return {
        "id": base_model(),
        "object": "model",
        "created": created,
        "owned_by": "veneer",
        "parent": None,
        "root": base_model(),
    }


def _adapter_card(name: str, version_id: str, owner: str, created: int) -> Json:
    """root: the immutable version that the name stands for."""
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": owner,
        "parent": base_model(),
        "root": version_id,
    }
