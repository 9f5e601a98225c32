"""One family of errors and one shape on the wire: `{"error": {"message", "type", "param", "code"}}`.

`message` names the field, the value and the remedy. 404 is the answer to foreign and missing alike.
"""

import logging
import sys
from typing import Any, ClassVar, Final

from django.core.exceptions import PermissionDenied
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response

log = logging.getLogger(__name__)
_DATABASE_AWAY: Final = (OperationalError, InterfaceError)


class ApiError(Exception):
    """The caller's fault, or a state the caller must wait for. Subclasses fix status, type and code."""

    status: ClassVar[int] = 400
    type: ClassVar[str] = "invalid_request_error"
    code: str = "invalid_request"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or type(self).code
        self.headers = headers or {}
        self.details = details or {}

    def body(self) -> dict[str, Any]:
        return error_body(self.message, type_=self.type, param=self.param, code=self.code, **self.details)


class InvalidRequest(ApiError):
    pass


class NotAuthenticated(ApiError):
    status = 401
    code = "invalid_api_key"


class InsufficientFunds(ApiError):
    """402: out of money. The SDKs do not retry it, which is right."""

    status = 402
    type = "insufficient_quota"
    code = "insufficient_quota"


class Forbidden(ApiError):
    status = 403
    type = "permission_error"
    code = "permission_denied"


class NotFound(ApiError):
    status = 404
    code = "not_found"


class Conflict(ApiError):
    status = 409
    code = "conflict"


class PreconditionFailed(ApiError):
    status = 412
    code = "precondition_failed"


class TooLarge(ApiError):
    status = 413
    code = "request_too_large"


class Unprocessable(ApiError):
    status = 422
    code = "unprocessable"


class RateLimited(ApiError):
    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class Unavailable(ApiError):
    """503: the engine or a store is away; the same request may succeed later."""

    status = 503
    type = "server_error"
    code = "unavailable"


def error_body(
    message: str, *, type_: str, param: str | None = None, code: str | None = None, **more: Any
) -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "param": param, "code": code, **more}}


def error_response(error: ApiError) -> JsonResponse:
    return JsonResponse(error.body(), status=error.status, headers=error.headers)


SIGN_IN = "Nobody is signed in: sign in to the console, or send an API key as `Authorization: Bearer vnr_...`."


def _from_drf(exc: drf.APIException) -> ApiError:
    if isinstance(exc, drf.ValidationError):
        param, message = _first_problem(exc.detail)
        return InvalidRequest(message, param=param, details={"fields": exc.get_full_details()})
    kinds: dict[int, type[ApiError]] = {401: NotAuthenticated, 403: Forbidden, 404: NotFound}
    kind = kinds.get(exc.status_code, InvalidRequest)
    message = SIGN_IN if isinstance(exc, drf.NotAuthenticated) else str(exc.detail)
    challenge = getattr(exc, "auth_header", None)
    error = kind(
        message,
        code=str(exc.get_codes()) if isinstance(exc.get_codes(), str) else None,
        headers={"WWW-Authenticate": challenge} if challenge else None,
    )
    if kind is InvalidRequest and exc.status_code != 400:
        error.status = exc.status_code  # type: ignore[misc]  # 405, 406, 415: same shape, their own status
    return error


def _first_problem(detail: Any, path: str = "") -> tuple[str | None, str]:
    """The first leaf of DRF's nested error detail: which field, and what is wrong with it."""
    if isinstance(detail, dict):
        key, value = next(iter(detail.items()))
        return _first_problem(value, path if key == "non_field_errors" else f"{path}.{key}".lstrip("."))
    if isinstance(detail, list):
        return _first_problem(next((d for d in detail if d), "invalid"), path)
    return path or None, f"{path}: {detail}" if path else str(detail)


def drf_exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's one handler (settings.REST_FRAMEWORK): every error leaves in our shape; our bugs stay 500s.

    PostgreSQL's text cannot hold a NUL, so an address with one names nothing.
    """
    if isinstance(exc, Http404) or (isinstance(exc, DataError) and "\x00" in context["request"].path):
        exc = NotFound("Not found.")
    elif isinstance(exc, PermissionDenied):
        exc = Forbidden(str(exc) or "You may not do this.")
    elif isinstance(exc, drf.APIException):
        exc = _from_drf(exc)
    elif isinstance(exc, _DATABASE_AWAY):
        exc = _database_away(exc)
    if not isinstance(exc, ApiError):
        return None
    return Response(exc.body(), status=exc.status, headers=exc.headers)


def _database_away(exc: BaseException) -> ApiError:
    """It is no bug of ours, and the same request may pass in a moment."""
    log.error("the database is away: %s", exc)
    text = "The database is away: send the request again."
    return Unavailable(text, code="database_unavailable", headers={"Retry-After": "2"})


def csrf_failure(request: HttpRequest, reason: str = "") -> JsonResponse:
    return error_response(Forbidden("The page is out of date: reload it and try again.", code="csrf_failed"))


def handler404(request: HttpRequest, exception: Exception) -> JsonResponse:
    return error_response(NotFound(f"No such address: {request.method} {request.path}", code="unknown_url"))


def handler500(request: HttpRequest) -> JsonResponse:
    """Also of what fails outside of a view, as the session's row does when the database is away."""
    failure = sys.exc_info()[1]
    if isinstance(failure, _DATABASE_AWAY):
        return error_response(_database_away(failure))
    message = "Something went wrong on our side; the request id names it in our logs."
    body = error_body(message, type_="server_error", code="internal_error")
    return JsonResponse(body, status=500)
