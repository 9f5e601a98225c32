"""What a tenant is told without asking: alerts, and the webhooks that carry them."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import TenantManager


def new_alert_id() -> str:
    return new_id("alr")


def new_endpoint_id() -> str:
    return new_id("whk")


class AlertKind(models.TextChoices):
    """The names that webhooks are subscribed to. A discrepancy is the operators': its alert has no tenant."""

    BUDGET = "budget.threshold"
    KEY_EXPIRING = "key.expiring"
    ADAPTER_READY = "adapter.ready"
    ADAPTER_REJECTED = "adapter.rejected"
    ADAPTER_ROLLED_BACK = "adapter.rolled_back"
    ADAPTER_REVOKED = "adapter.revoked"
    UNUSUAL_SPEND = "spend.unusual"
    INVOICE_ISSUED = "invoice.issued"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_TEST = "webhook.test"
    DISCREPANCY = "discrepancy.opened"


class Alert(models.Model):
    """Something that happened to `subject`, once per `occasion` (a threshold in a period, a date, a state).

    mail_at: when it is to be mailed; null: it is not, or was. mailed_at: when it was.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_alert_id, editable=False)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=32, choices=AlertKind)
    subject = models.CharField(max_length=100)
    occasion = models.CharField(max_length=100)
    data = models.JSONField()
    mail_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["Alert"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["mail_at"], condition=Q(mail_at__isnull=False), name="alerts_to_mail"),
            models.Index(fields=["tenant", "-created_at"], name="alerts_newest_first"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "subject", "occasion"], nulls_distinct=False, name="one_alert_per_occasion"
            ),
        ]


class WebhookEndpoint(models.Model):
    """Where a tenant wants its alerts sent. kinds: those wanted; empty: all.

    sealed_secret: signs what is sent; the one before signs too until old_until. failures: attempts in a row that
    failed, since failing_since. disabled_at: nothing is sent; `disabled_reason` says why.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_endpoint_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    url = models.CharField(max_length=2000)
    kinds = models.JSONField(default=list)
    sealed_secret = models.CharField(max_length=400)
    sealed_old_secret = models.CharField(max_length=400, null=True)
    old_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_reason = models.CharField(max_length=200, null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["WebhookEndpoint"]()


class DeliveryState(models.TextChoices):
    """pending: to be tried at next_at. failed: given up; it can be sent again by hand."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDelivery(models.Model):
    """An alert on its way to an endpoint. tries: attempts since it was last sent for the first time."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=16, choices=DeliveryState, db_default=DeliveryState.PENDING)
    tries = models.PositiveIntegerField(db_default=0)
    next_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["WebhookDelivery"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["next_at"], condition=Q(state="pending"), name="deliveries_due"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["endpoint", "alert"], name="one_delivery_per_alert"),
        ]


class WebhookAttempt(models.Model):
    """One try. status: the answer's; null: there was none, and `error` says why. excerpt: of the answer's body."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    status = models.PositiveIntegerField(null=True)
    error = models.CharField(max_length=300, null=True)
    excerpt = models.CharField(max_length=500)
    duration_ms = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["WebhookAttempt"]()
