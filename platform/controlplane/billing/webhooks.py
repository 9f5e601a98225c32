"""A tenant's webhooks: where its alerts go, and with which secret they are signed."""

import base64
import secrets
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.addresses import check_address, read_networks
from controlplane.billing.alerts import raise_alert
from controlplane.billing.models import AlertKind, DeliveryState, WebhookDelivery, WebhookEndpoint
from controlplane.errors import Conflict, InvalidRequest, NotFound
from controlplane.fetcher import FetchRefused, parse_url
from tenants.audit import record_audit
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.sealing import seal

MAX_ENDPOINTS: Final = 10
OLD_SECRET_LASTS: Final = timedelta(hours=24)


@transaction.atomic
def create_endpoint(*, tenant: Tenant, url: str, kinds: list[str], actor: str) -> tuple[WebhookEndpoint, str]:
    """The endpoint and its secret, which is shown this once. Within a `tenant_scope`, as everything here."""
    check_url(url)
    Tenant.objects.select_for_update().get(id=tenant.id)  # so that the count below is true
    if WebhookEndpoint.objects.filter(tenant=tenant).count() >= MAX_ENDPOINTS:
        raise Conflict(f"There are {MAX_ENDPOINTS} webhooks already: delete one first.", code="too_many_webhooks")
    secret = _new_secret()
    endpoint = WebhookEndpoint.objects.create(tenant=tenant, url=url, kinds=kinds, sealed_secret=seal(secret))
    record_audit(tenant=tenant, actor=actor, action="webhook.create", target=endpoint.id, details={"kinds": kinds})
    return endpoint, secret


@transaction.atomic
def change_endpoint(
    *, tenant: Tenant, endpoint_id: str, actor: str, url: str | None, kinds: list[str] | None, enabled: bool | None
) -> WebhookEndpoint:
    """None: stays as it is. Switching one on again forgets how often it failed."""
    endpoint = endpoint_named(tenant, endpoint_id)
    if url is not None:
        check_url(url)
        endpoint.url = url
    if kinds is not None:
        endpoint.kinds = kinds
    if enabled is not None:
        endpoint.disabled_at = None if enabled else timezone.now()
        endpoint.disabled_reason = None if enabled else "by hand"
        endpoint.failures, endpoint.failing_since = 0, None
    endpoint.save()
    details = {"url": url is not None, "kinds": kinds, "enabled": enabled}
    record_audit(tenant=tenant, actor=actor, action="webhook.change", target=endpoint.id, details=details)
    return endpoint


@transaction.atomic
def delete_endpoint(*, tenant: Tenant, endpoint_id: str, actor: str) -> None:
    """With its deliveries and their attempts."""
    endpoint_named(tenant, endpoint_id).delete()
    record_audit(tenant=tenant, actor=actor, action="webhook.delete", target=endpoint_id)


@transaction.atomic
def rotate_secret(*, tenant: Tenant, endpoint_id: str, actor: str) -> tuple[WebhookEndpoint, str]:
    """A new secret, shown this once. For a day the one before signs as well, so that none is refused."""
    endpoint, secret = endpoint_named(tenant, endpoint_id), _new_secret()
    endpoint.sealed_old_secret, endpoint.sealed_secret = endpoint.sealed_secret, seal(secret)
    endpoint.old_until = timezone.now() + OLD_SECRET_LASTS
    endpoint.save()
    record_audit(tenant=tenant, actor=actor, action="webhook.rotate", target=endpoint.id)
    return endpoint, secret


def send_test(*, tenant: Tenant, endpoint_id: str) -> None:
    """An alert that says nothing, to this endpoint alone. Conflict where it is switched off."""
    endpoint = endpoint_named(tenant, endpoint_id)
    if endpoint.disabled_at:
        raise Conflict("This webhook is switched off: switch it on first.", code="webhook_disabled")
    raise_alert(
        tenant_id=tenant.id, kind=AlertKind.WEBHOOK_TEST, subject=endpoint.id, occasion=new_id("try"), data={},
        only_endpoint=endpoint.id,
    )  # fmt: skip


@transaction.atomic
def send_again(*, tenant: Tenant, delivery_id: int) -> WebhookDelivery:
    """Try a delivery anew, at once, whatever became of it. It keeps its id, so a receiver can tell."""
    rows = WebhookDelivery.objects.filter(tenant=tenant, id=delivery_id)
    if not rows.update(state=DeliveryState.PENDING, tries=0, next_at=timezone.now()):
        raise NotFound(f"There is no delivery {delivery_id}.")
    return rows.select_related("alert").get()


def endpoint_named(tenant: Tenant, endpoint_id: str) -> WebhookEndpoint:
    found = WebhookEndpoint.objects.filter(tenant=tenant, id=endpoint_id).select_for_update().first()
    if found is None:
        raise NotFound(f"There is no webhook {endpoint_id}.")
    return found


def check_url(url: str) -> None:
    """What can be seen from here; the sender looks at what the name leads to, each time. Raises InvalidRequest."""
    try:
        parts, host, _ = parse_url(url)
        if parts.scheme != "https" and not settings.FETCH_ALLOWED_NETWORKS:
            raise FetchRefused("it is not an https address")
        _check_literal(host)
    except (FetchRefused, ValueError) as exc:
        raise InvalidRequest(f"url is refused: {exc}. Use a public https address.", param="url") from None


def _check_literal(host: str) -> None:
    """An address instead of a name needs no resolving to be refused."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        check_address(host, read_networks(settings.FETCH_ALLOWED_NETWORKS))


def _new_secret() -> str:
    """As standard-webhooks writes it: 24 random bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"
