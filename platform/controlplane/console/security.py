"""What a browser may do with our pages: only load from us, only call us and the door, never be framed."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponseBase

Handler = Callable[[HttpRequest], Awaitable[HttpResponseBase] | HttpResponseBase]


def content_security_policy(host: str) -> str:
    """host: as the browser named us; browsers differ in whether 'self' covers WebSockets, so they are named too."""
    return "; ".join(
        (
            "default-src 'self'",
            "style-src 'self' 'unsafe-inline'",  # Mantine writes its theme into a style element
            "img-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host} {settings.DOOR_URL}",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "object-src 'none'",
        )
    )


class SecurityHeadersMiddleware:
    sync_capable = async_capable = True

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponseBase] | HttpResponseBase:
        if iscoroutinefunction(self.get_response):
            return self._serve_async(request)
        response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _with_headers(request, response)

    async def _serve_async(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        assert not isinstance(response, HttpResponseBase)
        return _with_headers(request, await response)


def _with_headers(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", content_security_policy(_host(request)))
    response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
    return response


def _host(request: HttpRequest) -> str:
    """The Host header where it is one of ours: a stranger's text has no place in a policy."""
    try:
        return request.get_host()
    except SuspiciousOperation:
        return "localhost"
