"""Facts pushed to the console: `publish(tenant, event)` leaves after commit, to the tenant's channel group."""

import logging
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = logging.getLogger(__name__)


def group_name(tenant_id: str) -> str:
    return f"tenant.{tenant_id}"


def publish(*, tenant_id: str, event: str, data: dict[str, Any]) -> None:
    """Tell the tenant's open pages. A page that misses it reads the same on its next fetch, so a channel layer that
    is away costs a warning, never the transaction's effect."""

    def send() -> None:
        message = {"type": "tenant.event", "event": event, "data": data}
        try:
            async_to_sync(get_channel_layer().group_send)(group_name(tenant_id), message)
        except OSError as exc:
            log.warning("event %s not published: %s", event, exc)

    transaction.on_commit(send)
