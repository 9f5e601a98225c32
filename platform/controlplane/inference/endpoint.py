"""What every endpoint under /v1 shares: its request id, its methods, its key, and one shape of error."""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec

import psycopg
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from psycopg_pool import PoolTimeout

from controlplane.errors import ApiError, NotFound, TooLarge, Unavailable, error_body
from controlplane.inference.gate import require_action, require_network
from controlplane.inference.replies import json_reply
from controlplane.inference.resources import Door, door_of
from controlplane.inference.schemas import parse_json
from controlplane.logs import request_id as log_request_id
from tenants.auth import Principal
from tenants.ids import new_id
from tenants.networks import client_address

log = logging.getLogger(__name__)
P = ParamSpec("P")


class Call:
    """One authenticated call. id: new for each, never the client's: it names what is billed."""

    def __init__(self, request: HttpRequest, door: Door, principal: Principal, request_id: str) -> None:
        self.request = request
        self.door = door
        self.principal = principal
        self.id = request_id

    def body(self) -> dict[str, Any]:
        """The JSON object that was sent. Raises 415, 413 or 400."""
        media = self.request.content_type or "application/json"
        if media != "application/json":
            raise UnsupportedMedia(
                f"The body is declared as {media[:100]}: send JSON with `Content-Type: application/json`."
            )
        raw = self.request.read(settings.MAX_BODY_BYTES + 1)
        if len(raw) > settings.MAX_BODY_BYTES:
            raise body_too_large(settings.MAX_BODY_BYTES)
        return parse_json(raw)


class UnsupportedMedia(ApiError):
    status = 415
    code = "unsupported_media_type"


class MethodNotAllowed(ApiError):
    status = 405
    code = "method_not_allowed"


def body_too_large(limit: int) -> TooLarge:
    """limit: bytes."""
    return TooLarge(f"The body is larger than {limit} bytes: send less at a time.")


View = Callable[Concatenate[HttpRequest, P], Coroutine[Any, Any, HttpResponseBase]]
Endpoint = Callable[Concatenate[Call, P], Awaitable[HttpResponseBase]]


def endpoint(method: str, *actions: str) -> Callable[[Endpoint[P]], View[P]]:
    """Makes a view of `async def name(call, ...)`: one method, a key that may do one of `actions`."""

    def decorate(serve: Endpoint[P]) -> View[P]:
        route = f"{method} {getattr(serve, '__name__', 'view')}"

        @csrf_exempt
        async def view(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            request_id = new_id("req")
            token = log_request_id.set(request_id)
            try:
                if request.method != method:
                    raise MethodNotAllowed(
                        f"{request.path} takes {method}, not {request.method}.", headers={"Allow": method}
                    )
                door, parent = door_of(request), request.META.get("HTTP_TRACEPARENT")
                with door.tracing.span("door.request", parent=parent, route=route, request_id=request_id) as span:
                    principal = await door.gate.principal_for(door.pool, request.META.get("HTTP_AUTHORIZATION"))
                    span.note(tenant=principal.tenant_id)
                    require_network(principal, client_address(request.META))
                    require_action(principal, *actions)
                    response = await serve(Call(request, door, principal, request_id), *args, **kwargs)
            except Exception as exc:
                response = error_reply(exc)
            finally:
                log_request_id.reset(token)
            response["x-request-id"] = request_id
            return response

        view.__name__ = getattr(serve, "__name__", "view")
        view.__doc__ = serve.__doc__
        return view

    return decorate


def error_reply(exc: Exception) -> HttpResponse:
    """Any failure as the one shape of error. The text of what we did not foresee goes to the log alone."""
    if isinstance(exc, psycopg.OperationalError | PoolTimeout):
        log.error("the database is away: %s", exc)
        exc = Unavailable(
            "The database is away: send the request again.", code="database_unavailable", headers={"Retry-After": "2"}
        )
    if isinstance(exc, ApiError):
        return json_reply(exc.body(), status=exc.status, headers=exc.headers)
    log.error("unforeseen failure", exc_info=exc)
    text = "Something went wrong on our side; the header x-request-id names it in our logs."
    return json_reply(error_body(text, type_="server_error", code="internal_error"), status=500)


@csrf_exempt
async def unknown_url(request: HttpRequest) -> HttpResponse:
    """Anything else below /v1."""
    response = error_reply(NotFound(f"No such address: {request.method} {request.path[:200]}", code="unknown_url"))
    response["x-request-id"] = new_id("req")
    return response
