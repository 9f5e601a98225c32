"""/v1/batches: created, read and cancelled by the key that they belong to."""

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from controlplane.batches.asked import parse_batch
from controlplane.batches.cancelling import batch_named, cancel_batch
from controlplane.batches.lists import page, read_limit
from controlplane.batches.models import Batch
from controlplane.batches.shapes import batch_body
from controlplane.batches.starting import start_batch
from controlplane.batches.threads import in_thread
from controlplane.batches.totals import totals_of
from controlplane.inference.answers import Json
from controlplane.inference.asking import known_engine
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.replies import json_reply
from tenants.auth import Principal


@csrf_exempt
async def all_batches(request: HttpRequest) -> HttpResponseBase:
    """GET or POST /v1/batches."""
    return await (create if request.method == "POST" else list_batches)(request)


@endpoint("POST", "inference")
async def create(call: Call) -> HttpResponseBase:
    asked = parse_batch(call.body())
    context_len = (await known_engine(call.door)).context_len
    batch = await in_thread(call.principal.tenant_id, start_batch, call.principal, asked, context_len)
    return json_reply(await in_thread(call.principal.tenant_id, _body, batch))


@endpoint("GET", "inference")
async def list_batches(call: Call) -> HttpResponseBase:
    limit = read_limit(call.request, 20, 100)
    return json_reply(await in_thread(call.principal.tenant_id, _listed, call, limit))


@endpoint("GET", "inference")
async def retrieve(call: Call, batch_id: str) -> HttpResponseBase:
    return json_reply(await in_thread(call.principal.tenant_id, _named, call.principal, batch_id))


@endpoint("POST", "inference")
async def cancel(call: Call, batch_id: str) -> HttpResponseBase:
    return json_reply(await in_thread(call.principal.tenant_id, _cancelled, call.principal, batch_id))


def _of_key(principal: Principal) -> "QuerySet[Batch]":
    return Batch.objects.filter(tenant_id=principal.tenant_id, key_id=principal.key_id)


def _body(batch: Batch) -> Json:
    return batch_body(batch, totals_of(batch))


def _listed(call: Call, limit: int) -> Json:
    return page(_of_key(call.principal), call.request, limit, _body)


def _named(principal: Principal, batch_id: str) -> Json:
    return _body(batch_named(_of_key(principal), batch_id))


def _cancelled(principal: Principal, batch_id: str) -> Json:
    return _body(cancel_batch(_of_key(principal), batch_id, actor=principal.key_id))
