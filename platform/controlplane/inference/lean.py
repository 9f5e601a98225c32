"""Django's requests, views and responses on the shortest path there is: the handler of the door's own process.

The stock handler runs synchronous signal receivers and middleware, for which it keeps a thread pool per request: most
of what a short request costs. This one has no middleware and sends no signals, so nothing in it is synchronous.
"""

import asyncio
import contextlib
from tempfile import SpooledTemporaryFile
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.base import BaseHandler
from django.http.response import HttpResponse, HttpResponseBase
from django.urls import Resolver404, get_resolver
from psycopg_pool import PoolTimeout

from controlplane.errors import ApiError, NotAuthenticated, NotFound
from controlplane.inference.endpoint import body_too_large, error_reply
from controlplane.inference.replies import EventStream
from controlplane.inference.resources import Door, Receive, Scope, Send
from tenants.ids import new_id

# A body over the limit is read on up to here, so that its sender gets to read why it is refused.
DRAIN_FACTOR = 8
FILES = "/v1/files"  # uploads


class LeanHandler(ASGIHandler):
    """Serves the urlconf `urls`, over HTTP only."""

    def __init__(self, urls: str) -> None:
        BaseHandler.__init__(self)  # not ASGIHandler's, which loads middleware
        self._resolver = get_resolver(urls)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # type: ignore[override]
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        try:
            body = await self.read_body(receive, await _body_limit(scope))
            request, _ = self.create_request(scope, body)
        except RequestAborted:
            return
        except ApiError as error:
            await self.send_response(_refused(error), send)
            return
        if request is None:
            text = NotFound("The address is not valid UTF-8.", code="unknown_url")
            await self.send_response(_refused(text), send)
            return
        await self._serve_until_gone(request, receive, send)

    async def _serve_until_gone(self, request: ASGIRequest, receive: Receive, send: Send) -> None:
        """The view and its response are cancelled when the client leaves; `finally` blocks of both run."""
        work = asyncio.current_task()
        assert work is not None
        watch = _Watch(work)
        gone = asyncio.create_task(watch.until_gone(receive))
        try:
            await self._serve(request, send)
        except asyncio.CancelledError:
            if not watch.has_left or work.uncancel():
                raise
        finally:
            gone.cancel()

    async def _serve(self, request: ASGIRequest, send: Send) -> None:
        response = await self._respond(request)
        await self.send_response(response, send)

    async def _respond(self, request: ASGIRequest) -> HttpResponseBase:
        try:
            match = self._resolver.resolve(request.path_info)
        except Resolver404:
            return _refused(NotFound(f"No such address: {request.method} {request.path[:200]}", code="unknown_url"))
        response: HttpResponseBase = await match.func(request, *match.args, **match.kwargs)
        return response

    async def send_response(self, response: HttpResponseBase, send: Send) -> None:
        """As Django's, for answers that set no cookies."""
        headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        if isinstance(response, HttpResponse):
            await send({"type": "http.response.body", "body": response.content})
            return
        assert isinstance(response, EventStream), response
        async with contextlib.aclosing(response.frames) as frames:
            async for part in frames:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    async def read_body(  # type: ignore[override]
        self, receive: Receive, limit: int
    ) -> "SpooledTemporaryFile[bytes]":
        """The whole body, counted while it is read; what is large lies on the disk. Raises TooLarge, and RequestAborted
        when the client leaves."""
        body, size = SpooledTemporaryFile[bytes](max_size=settings.MAX_BODY_BYTES), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestAborted
            part = message.get("body", b"")
            size += len(part)
            if size <= limit:
                body.write(part)
            elif size > limit + DRAIN_FACTOR * settings.MAX_BODY_BYTES:
                raise body_too_large(limit)
            if not message.get("more_body", False):
                break
        if size > limit:
            raise body_too_large(limit)
        body.seek(0)
        return body


class _Watch:
    """Whether the client has left, and what ends then. (A task for the view beside one for this, and somebody to wait
    for both, would be two tasks more for each request.)"""

    def __init__(self, work: asyncio.Task[Any]) -> None:
        self.has_left = False
        self._work = work

    async def until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        self._work.cancel()


async def _body_limit(scope: Scope) -> int:
    """Bytes. Only whoever has a key may upload a file; what others send is read as far as any request, and refused."""
    limit: int = settings.MAX_BODY_BYTES
    door = scope.get("veneer.door")
    if (scope["method"], scope["path"]) != ("POST", FILES) or not isinstance(door, Door):
        return limit
    key = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    try:
        await door.gate.principal_for(door.pool, key)
    except (NotAuthenticated, psycopg.OperationalError, PoolTimeout):
        return limit
    return limit + int(settings.MAX_BATCH_FILE_BYTES)


def _refused(error: ApiError) -> HttpResponseBase:
    response = error_reply(error)
    response["x-request-id"] = new_id("req")
    return response
