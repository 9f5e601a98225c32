"""Webhooks on their way: each due delivery is claimed, sent once, and its outcome kept.

At least once: a worker that dies between the sending and the writing sends again, under the same webhook-id.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from standardwebhooks.webhooks import Webhook

from controlplane.addresses import read_networks
from controlplane.billing.alerts import raise_alert
from controlplane.billing.models import AlertKind, DeliveryState, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from controlplane.fetcher import Fetcher, FetchFailed, FetchRefused, shown_url
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sealing import unseal

ANSWER_SECONDS: Final = 10.0
LEASE: Final = timedelta(seconds=60)
# After the first, second, ... try; the last is followed by giving up. A day and a half in all.
WAITS: Final = tuple(timedelta(seconds=s) for s in (10, 60, 300, 1800, 7200, 18_000, 36_000, 50_400))
DISABLED_AFTER: Final = timedelta(days=3)
DISABLED_AT_LEAST: Final = 10  # failures in a row
_EXCERPT: Final = 500
_GONE: Final = 410


@dataclass(frozen=True)
class Outcome:
    """status None: no answer."""

    status: int | None
    error: str | None
    excerpt: str
    duration_ms: int

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def new_fetcher() -> Fetcher:
    return Fetcher(read_networks(settings.FETCH_ALLOWED_NETWORKS), seconds=ANSWER_SECONDS)


def send_due(fetcher: Fetcher, *, limit: int = 50, tenant: str = ALL_TENANTS) -> int:
    """Send what is due of one tenant, or of all, and return how many were tried. Any number of workers may do so side
    by side."""
    tried = 0
    with tenant_scope(tenant):
        for delivery in _claimed(limit):
            _finish(delivery, send(delivery, fetcher))
            tried += 1
    return tried


def _claimed(limit: int) -> Iterator[WebhookDelivery]:
    """One at a time, each leased for a minute: a worker that dies gives it back by doing nothing."""
    for _ in range(limit):
        with transaction.atomic():
            due = WebhookDelivery.objects.filter(
                state=DeliveryState.PENDING, next_at__lte=timezone.now(), endpoint__disabled_at=None
            )
            delivery = (
                due.select_for_update(skip_locked=True, of=("self",))
                .select_related("alert", "endpoint")
                .order_by("next_at", "id")
                .first()
            )
            if delivery is None:
                return
            WebhookDelivery.objects.filter(id=delivery.id).update(next_at=timezone.now() + LEASE)
        yield delivery


def send(delivery: WebhookDelivery, fetcher: Fetcher) -> Outcome:
    """One POST, to a checked and pinned address, following nothing."""
    body = _body(delivery)
    started = time.monotonic()
    status, error, excerpt = None, None, ""
    try:
        headers = _headers(delivery, body)
        with fetcher.open(delivery.endpoint.url, headers=headers, method="POST", body=body, redirects=0) as answer:
            status = answer.status
            excerpt = next(answer.chunks(64 * 1024), b"")[:_EXCERPT].decode("utf-8", "replace").replace("\x00", "")
    except (FetchRefused, FetchFailed) as exc:
        error = None if status else str(exc)[:300]
    return Outcome(status, error, excerpt, int((time.monotonic() - started) * 1000))


def _body(delivery: WebhookDelivery) -> bytes:
    alert = delivery.alert
    told = {"type": alert.kind, "timestamp": alert.created_at.isoformat(), "data": alert.data}
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()


def _headers(delivery: WebhookDelivery, body: bytes) -> dict[str, str]:
    """standard-webhooks: a signature by each secret that is in force. Raises FetchRefused where none can be read."""
    now = timezone.now()
    secrets = [unseal(sealed) for sealed in _sealed(delivery.endpoint, now)]
    signatures = [Webhook(secret).sign(delivery.alert_id, now, body.decode()) for secret in secrets if secret]
    if not signatures:
        raise FetchRefused("its secret was sealed with a pepper that is gone: rotate it")
    return {
        "Content-Type": "application/json",
        "webhook-id": delivery.alert_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _sealed(endpoint: WebhookEndpoint, now: datetime) -> list[str]:
    old = endpoint.sealed_old_secret
    return [endpoint.sealed_secret, *([old] if old and endpoint.old_until and now < endpoint.old_until else [])]


@transaction.atomic
def _finish(delivery: WebhookDelivery, outcome: Outcome) -> None:
    endpoint = WebhookEndpoint.objects.select_for_update().filter(id=delivery.endpoint_id).first()
    if endpoint is None:
        return  # deleted with its deliveries while this one was on its way
    WebhookAttempt.objects.create(
        tenant_id=delivery.tenant_id, delivery=delivery, status=outcome.status, error=outcome.error,
        excerpt=outcome.excerpt, duration_ms=outcome.duration_ms,
    )  # fmt: skip
    rows = WebhookDelivery.objects.filter(id=delivery.id)
    if outcome.is_taken:
        rows.update(state=DeliveryState.DELIVERED, tries=F("tries") + 1)
        WebhookEndpoint.objects.filter(id=endpoint.id).update(failures=0, failing_since=None)
        return
    tries = delivery.tries + 1
    if tries > len(WAITS):
        rows.update(state=DeliveryState.FAILED, tries=tries)
    else:
        rows.update(tries=tries, next_at=timezone.now() + _jittered(WAITS[tries - 1]))
    _count_failure(endpoint, outcome)


def _jittered(wait: timedelta) -> timedelta:
    """Up to a fifth longer, so that what failed together does not come back together."""
    return wait * random.uniform(1.0, 1.2)


def _count_failure(endpoint: WebhookEndpoint, outcome: Outcome) -> None:
    """Endpoints that only fail are switched off, and their people told. 410 says so at once."""
    now = timezone.now()
    endpoint.failures += 1
    endpoint.failing_since = endpoint.failing_since or now
    hopeless = endpoint.failures >= DISABLED_AT_LEAST and now - endpoint.failing_since >= DISABLED_AFTER
    gone = outcome.status == _GONE
    if endpoint.disabled_at is None and (hopeless or gone):
        endpoint.disabled_at = now
        endpoint.disabled_reason = "it answered 410 Gone" if gone else f"{endpoint.failures} failures in a row"
    endpoint.save()  # first: what is switched off is not sent the news
    if endpoint.disabled_at == now:
        _tell(endpoint, now)


def _tell(endpoint: WebhookEndpoint, now: datetime) -> None:
    data = {"name": shown_url(endpoint.url), "reason": endpoint.disabled_reason, "webhook_id": endpoint.id}
    raise_alert(
        tenant_id=endpoint.tenant_id, kind=AlertKind.WEBHOOK_DISABLED, subject=endpoint.id, occasion=now.isoformat(),
        data=data,
    )  # fmt: skip
