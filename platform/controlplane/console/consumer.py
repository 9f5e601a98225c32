"""`/ws/events`: what happens in a tenant, pushed to the pages its people have open; and the fleet, to operators."""

import json
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from rest_framework.exceptions import NotFound

from controlplane.console.fleet_feed import FleetFeed, Frame
from controlplane.events import group_name
from tenants.api_auth import caller_for
from tenants.models import User
from tenants.sessions import Company, SessionStore, company_of

CHECK_EVERY: Final = 10.0  # seconds for which a membership, once seen, is believed
GONE: Final = 4401  # close code: signed out, or no member any more
FLEET: Final = "fleet"
MOST_WORDS: Final = 1000  # of what a page may say


@dataclass(frozen=True)
class Listener:
    """Who has the page open. tenant_id: whose events it gets; None only for an operator."""

    tenant_id: str | None
    is_operator: bool


class EventsConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One open page. It gets `{"event", "data"}` of one tenant, `?tenant=` or the first.

    An operator's page may say `{"watch": ["fleet"]}`, and gets a `fleet.frame` a second until it says `{"watch": []}`.
    Frames go to that socket alone: they pass through no group. What else a page says is ignored.
    """

    listener: Listener | None = None
    feed: FleetFeed | None = None
    seen_at = 0.0

    async def connect(self) -> None:
        if is_own_origin(self.scope):
            self.listener = await self._look(_asked_tenant(self.scope))
        if self.listener is None:
            await self.close()
            return
        self.seen_at = time.monotonic()
        if self.listener.tenant_id:
            await self.channel_layer.group_add(group_name(self.listener.tenant_id), self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        await self._end_feed()
        if self.listener and self.listener.tenant_id:
            await self.channel_layer.group_discard(group_name(self.listener.tenant_id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        wanted = _watched(text_data)
        if wanted is None or not (self.listener and self.listener.is_operator):
            return
        if FLEET not in wanted:
            await self._end_feed()
        elif self.feed is None:
            self.feed = FleetFeed(self._show_fleet, self._may_see_fleet)
            self.feed.start()

    async def tenant_event(self, message: dict[str, Any]) -> None:
        if await self._is_still_here():
            await self.send_json({"event": message["event"], "data": message["data"]})

    async def _show_fleet(self, frame: Frame) -> None:
        await self.send_json({"event": "fleet.frame", "data": frame})

    async def _may_see_fleet(self) -> bool:
        return await self._is_still_here() and self.listener is not None and self.listener.is_operator

    async def _end_feed(self) -> None:
        feed, self.feed = self.feed, None
        if feed:
            await feed.end()

    async def _is_still_here(self) -> bool:
        """A socket outlives the session that opened it, so who listens is looked at again, now and then."""
        if time.monotonic() - self.seen_at > CHECK_EVERY and self.listener:
            was, self.listener = self.listener, await self._look(self.listener.tenant_id)
            if self.listener is None or self.listener.tenant_id != was.tenant_id:
                self.listener = was
                await self.close(code=GONE)
                return False
            self.seen_at = time.monotonic()
        return True

    @database_sync_to_async  # type: ignore[untyped-decorator]  # channels has no types
    def _look(self, asked: str | None) -> Listener | None:
        """Whose events the session's person may see; None for strangers and the signed out."""
        user, company = signed_in(self.scope["cookies"].get(settings.SESSION_COOKIE_NAME))
        if user is None:
            return None
        try:
            found = caller_for(user, asked, company)
        except NotFound:
            return None
        if found.tenant is None and not found.is_operator:
            return None
        return Listener(str(found.tenant.id) if found.tenant else None, found.is_operator)


def signed_in(session_key: str | None) -> tuple[User | None, Company | None]:
    """Whose session this is now, which may not be what it was when the socket was opened; and through whom."""
    request = HttpRequest()
    request.session = SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) else None, company_of(request.session)


def _watched(text: str | None) -> list[str] | None:
    """What a page asks to watch; None where it says something else."""
    try:
        said = json.loads(text) if text and len(text) <= MOST_WORDS else None
    except (ValueError, RecursionError):
        return None
    wanted = said.get("watch") if isinstance(said, dict) else None
    return [str(each) for each in wanted] if isinstance(wanted, list) else None


def _asked_tenant(scope: dict[str, Any]) -> str | None:
    asked = parse_qs(scope["query_string"].decode(errors="replace")).get("tenant")
    return asked[0] if asked else None


def is_own_origin(scope: dict[str, Any]) -> bool:
    """Cookies ride along with any page's WebSocket; the Origin says whose page it is. None is no browser of ours."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode(errors="replace")
    host = headers.get(b"host", b"").decode(errors="replace")
    return bool(host) and (urlsplit(origin).netloc == host or origin in settings.CSRF_TRUSTED_ORIGINS)
