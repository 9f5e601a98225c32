"""Facts pushed to the console: `publish(tenant, event)` leaves after commit, to the tenant's channel group."""

import logging
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

log = logging.getLogger(__name__)


def group_name(tenant_id: str) -> str:
    return f"tenant.{tenant_id}"


def publish(*, tenant_id: str, event: str, data: dict[str, Any]) -> None:
    """Tell the tenant's open pages, once the current transaction commits."""
    # robust: whatever goes wrong here must not turn a committed deed into an error.
    transaction.on_commit(
        lambda: async_to_sync(publish_async)(tenant_id=tenant_id, event=event, data=data), robust=True
    )


async def publish_async(*, tenant_id: str, event: str, data: dict[str, Any]) -> None:
    """For asynchronous callers, after their commit. A page that misses an event reads the same on its next fetch, so a
    channel layer that is away costs a warning, never the deed."""
    message = {"type": "tenant.event", "event": event, "data": data}
    try:
        await get_channel_layer().group_send(group_name(tenant_id), message)
    except (OSError, RedisError) as exc:
        log.warning("event %s not published: %s", event, exc)
