"""An ASGI wrapper that ends a request whose body is too large, before anybody spools it to disk."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings

from controlplane.errors import TooLarge, error_response

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Exceeded(Exception):
    pass


def limit_for(scope: Scope) -> int:
    """Bytes. Only parts of an upload may be large, and files of batches."""
    limit: int = settings.MAX_BODY_BYTES
    if scope["method"] == "PUT" and scope["path"].startswith("/api/v1/versions/"):
        limit = settings.MAX_PART_BYTES
    if (scope["method"], scope["path"]) == ("POST", "/v1/files"):
        limit += settings.MAX_BATCH_FILE_BYTES
    return limit


class BodyLimit:
    """Counts what arrives, whatever Content-Length says, and answers 413."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = limit_for(scope)
        if _declared(scope) > limit:
            await _refuse(send, limit)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise _Exceeded
            return message

        try:
            await self._app(scope, counted, send)
        except _Exceeded:
            # Django reads the body before it answers anything, so nothing has been sent yet.
            await _refuse(send, limit)


def _declared(scope: Scope) -> int:
    raw = dict(scope["headers"]).get(b"content-length", b"0")
    return int(raw) if raw.isdigit() else 0


async def _refuse(send: Send, limit: int) -> None:
    response = error_response(TooLarge(f"The body is larger than {limit} bytes: send less at a time."))
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
