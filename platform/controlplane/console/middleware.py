"""What every request begins with.

One request id: taken from a sane `x-request-id`, else made; on the response, in the logs. A view may have answered with
an id of its own (the door does: it names what is billed). And nobody's rows: permissions let it see some.
"""

import re
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from controlplane.logs import request_id
from tenants.ids import new_id
from tenants.scope import tenant_scope

_SANE = re.compile(r"[A-Za-z0-9_.:-]{1,80}")


def request_id_for(header: str | None) -> str:
    return header if header and _SANE.fullmatch(header) else new_id("req")


class RequestIdMiddleware:
    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase] | HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponseBase] | HttpResponseBase:
        found = request_id_for(request.headers.get("x-request-id"))
        if iscoroutinefunction(self.get_response):
            return self._serve_async(request, found)
        request_id.set(found)  # and left so: Django logs the outcome after this returns; the next request sets its own
        response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        response.headers.setdefault("x-request-id", found)
        return response

    async def _serve_async(self, request: HttpRequest, found: str) -> HttpResponseBase:
        request_id.set(found)
        response = self.get_response(request)
        assert not isinstance(response, HttpResponseBase)
        answer = await response
        answer.headers.setdefault("x-request-id", found)
        return answer


class NoScopeMiddleware:
    """Whatever a request's permissions let it see is over with the request."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase] | HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponseBase] | HttpResponseBase:
        if iscoroutinefunction(self.get_response):
            return self._serve_async(request)
        with tenant_scope(None):
            return self.get_response(request)

    async def _serve_async(self, request: HttpRequest) -> HttpResponseBase:
        with tenant_scope(None):
            response = self.get_response(request)
            assert not isinstance(response, HttpResponseBase)
            return await response
