"""What a browser may do with our pages: only load from us, only call us and the door, never be framed."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponseBase

from controlplane.console.around import AroundMiddleware, Finish


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


class SecurityHeadersMiddleware(AroundMiddleware):
    @contextmanager
    def around(self, request: HttpRequest) -> Iterator[Finish]:
        def with_headers(response: HttpResponseBase) -> HttpResponseBase:
            response.headers.setdefault("Content-Security-Policy", content_security_policy(_host(request)))
            response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
            return response

        yield with_headers


def _host(request: HttpRequest) -> str:
    """The Host header where it is one of ours: a stranger's text has no place in a policy."""
    try:
        return request.get_host()
    except SuspiciousOperation:
        return "localhost"
