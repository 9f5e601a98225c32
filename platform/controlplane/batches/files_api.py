"""/v1/files: uploaded, listed, read and deleted by the key that they belong to."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from controlplane.batches import files
from controlplane.batches.form import read_upload
from controlplane.batches.lists import page, read_limit, read_order
from controlplane.batches.models import File, Purpose
from controlplane.batches.shapes import file_body
from controlplane.batches.store import chunks_of
from controlplane.batches.threads import in_thread
from controlplane.inference.answers import Json
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.fields import wrong
from controlplane.inference.replies import EventStream, json_reply
from tenants.auth import Principal

MOST_LISTED = 10_000


@csrf_exempt
async def all_files(request: HttpRequest) -> HttpResponseBase:
    """GET or POST /v1/files."""
    return await (upload if request.method == "POST" else list_files)(request)


@csrf_exempt
async def one_file(request: HttpRequest, file_id: str) -> HttpResponseBase:
    """GET or DELETE /v1/files/{id}."""
    return await (delete if request.method == "DELETE" else retrieve)(request, file_id)


@endpoint("POST", "inference")
async def upload(call: Call) -> HttpResponseBase:
    return json_reply(file_body(await in_thread(call.principal.tenant_id, _keep, call)))


def _keep(call: Call) -> File:
    form = read_upload(call.request)
    try:
        return files.keep_upload(call.principal, form.name, form.content, form.size, form.kept)
    finally:
        form.content.close()


@endpoint("GET", "inference")
async def list_files(call: Call) -> HttpResponseBase:
    purpose = call.request.GET.get("purpose")
    if purpose is not None and purpose not in Purpose.values:
        raise wrong("purpose", purpose, f"it must be one of {', '.join(Purpose.values)}")
    return json_reply(await in_thread(call.principal.tenant_id, _listed, call, purpose))


def _listed(call: Call, purpose: str | None) -> Json:
    rows = files.files_of(call.principal)
    rows = rows.filter(purpose=purpose) if purpose else rows
    limit = read_limit(call.request, MOST_LISTED, MOST_LISTED)
    return page(rows, call.request, limit, file_body, oldest_first=read_order(call.request))


@endpoint("GET", "inference")
async def retrieve(call: Call, file_id: str) -> HttpResponseBase:
    return json_reply(file_body(await in_thread(call.principal.tenant_id, files.file_named, call.principal, file_id)))


@endpoint("DELETE", "inference")
async def delete(call: Call, file_id: str) -> HttpResponseBase:
    await in_thread(call.principal.tenant_id, files.delete_file, call.principal, file_id)
    return json_reply({"id": file_id, "object": "file", "deleted": True})


@endpoint("GET", "inference")
async def content(call: Call, file_id: str) -> HttpResponseBase:
    """The bytes as they are. Never shown by a browser as anything else: it is what somebody uploaded."""
    file, chunks = await in_thread(call.principal.tenant_id, _opened, call.principal, file_id)
    headers = {
        "Content-Length": str(file.size),
        "Content-Disposition": f'attachment; filename="{file.id}.jsonl"',
        "X-Content-Type-Options": "nosniff",
    }
    response = EventStream(_frames(chunks), headers)
    response["Content-Type"] = "application/octet-stream"
    return response


def _opened(principal: Principal, file_id: str) -> tuple[File, Iterator[bytes]]:
    file = files.file_named(principal, file_id)
    try:
        return file, chunks_of(file.tenant_id, file.id)
    except FileNotFoundError:
        raise files.file_not_found(file_id) from None


async def _frames(chunks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    while chunk := await asyncio.to_thread(next, chunks, b""):
        yield chunk
