"""`/ws/events`: what happens in a tenant, pushed to the pages its people have open."""

import time
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from rest_framework.exceptions import NotFound

from controlplane.events import group_name
from tenants.api_auth import caller_for
from tenants.models import User
from tenants.sessions import Company, SessionStore, company_of

CHECK_EVERY: Final = 10.0  # seconds for which a membership, once seen, is believed
GONE: Final = 4401  # close code: signed out, or no member any more


class EventsConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One open page. Nothing is read from it; it gets `{"event", "data"}` of one tenant, `?tenant=` or the first."""

    tenant_id: str | None = None
    seen_at = 0.0

    async def connect(self) -> None:
        if not is_own_origin(self.scope):
            await self.close()
            return
        self.tenant_id = await self._tenant_id(_asked_tenant(self.scope))
        if self.tenant_id is None:
            await self.close()
            return
        self.seen_at = time.monotonic()
        await self.channel_layer.group_add(group_name(self.tenant_id), self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        if self.tenant_id is not None:
            await self.channel_layer.group_discard(group_name(self.tenant_id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """Pages have nothing to say here; a frame keeps the connection open and is otherwise ignored."""

    async def tenant_event(self, message: dict[str, Any]) -> None:
        """A socket outlives the session that opened it, so who listens is looked at again, now and then."""
        if time.monotonic() - self.seen_at > CHECK_EVERY:
            if await self._tenant_id(self.tenant_id) is None:
                await self.close(code=GONE)
                return
            self.seen_at = time.monotonic()
        await self.send_json({"event": message["event"], "data": message["data"]})

    @database_sync_to_async  # type: ignore[untyped-decorator]  # channels has no types
    def _tenant_id(self, asked: str | None) -> str | None:
        """Whose events the session's person may see; None for strangers and the signed out."""
        user, company = signed_in(self.scope["cookies"].get(settings.SESSION_COOKIE_NAME))
        if user is None:
            return None
        try:
            tenant = caller_for(user, asked, company).tenant
        except NotFound:
            return None
        return str(tenant.id) if tenant else None


def signed_in(session_key: str | None) -> tuple[User | None, Company | None]:
    """Whose session this is now, which may not be what it was when the socket was opened; and through whom."""
    request = HttpRequest()
    request.session = SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) else None, company_of(request.session)


def _asked_tenant(scope: dict[str, Any]) -> str | None:
    asked = parse_qs(scope["query_string"].decode(errors="replace")).get("tenant")
    return asked[0] if asked else None


def is_own_origin(scope: dict[str, Any]) -> bool:
    """Cookies ride along with any page's WebSocket; the Origin says whose page it is. None is no browser of ours."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode(errors="replace")
    host = headers.get(b"host", b"").decode(errors="replace")
    return bool(host) and (urlsplit(origin).netloc == host or origin in settings.CSRF_TRUSTED_ORIGINS)
