"""GET /v1/models: what this key may call, by the names it may use."""

from django.conf import settings
from django.http.response import HttpResponseBase

from controlplane.adapters.queries import listed_models, resolve_model
from controlplane.inference.admission import base_model, check_allowed, model_not_found
from controlplane.inference.answers import Json
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.replies import json_reply
from tenants.sql import run_async


@endpoint("GET", "inference")
async def models(call: Call) -> HttpResponseBase:
    listed = await run_async(call.door.pool, listed_models(tenant_id=call.principal.tenant_id))
    adapters = [
        _adapter_card(found.id, found.version_id, call.principal.tenant_slug, int(found.created.timestamp()))
        for found in listed
        if found.base_model == base_model() and call.principal.may_use(found.id)
    ]
    base = [_base_card()] if call.principal.may_use(base_model()) else []
    return json_reply({"object": "list", "data": [*base, *adapters]})


@endpoint("GET", "inference")
async def model(call: Call, name: str) -> HttpResponseBase:
    check_allowed(call.principal, name)
    if name == base_model():
        return json_reply(_base_card())
    tenant_id = call.principal.tenant_id
    found = await run_async(call.door.pool, resolve_model(tenant_id=tenant_id, model=name, pick=0.0))
    if found is None or found.base_model != base_model():
        raise model_not_found(name)
    listed = await run_async(call.door.pool, listed_models(tenant_id=tenant_id))
    created = next((int(each.created.timestamp()) for each in listed if each.id == name.partition("@")[0]), 0)
    return json_reply(_adapter_card(name, found.version_id, call.principal.tenant_slug, created))


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
