"""Alerts and webhooks over HTTP."""

from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.models import Alert, AlertKind, DeliveryState, WebhookDelivery, WebhookEndpoint
from controlplane.billing.operator_api import OperatorView, checked
from controlplane.billing.ranges import choice
from controlplane.billing.webhooks import (
    change_endpoint,
    create_endpoint,
    delete_endpoint,
    endpoint_named,
    rotate_secret,
    send_again,
    send_test,
)
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.scope import ALL_TENANTS, tenant_scope

_ANY = "any"
# What a tenant may subscribe to.
KINDS = [kind.value for kind in AlertKind if kind not in (AlertKind.DISCREPANCY, AlertKind.WEBHOOK_TEST)]


class AlertShape(serializers.Serializer[Any]):
    """Raised once per subject and occasion. data: what it is about; its members go by the kind."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(AlertKind.choices)
    subject = serializers.CharField()
    data = serializers.DictField()  # type: ignore[assignment]  # DRF takes it off the class
    mailed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class WebhookShape(serializers.Serializer[Any]):
    """kinds: the alerts it gets; empty: all. failures: attempts in a row that failed."""

    id = serializers.CharField()
    url = serializers.CharField()
    kinds = serializers.ListField(child=serializers.CharField())
    failures = serializers.IntegerField()
    failing_since = serializers.DateTimeField(allow_null=True)
    disabled_at = serializers.DateTimeField(allow_null=True)
    disabled_reason = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class WebhookWithSecretShape(WebhookShape):
    """secret: signs every message (standard-webhooks); it is not shown again."""

    secret = serializers.CharField()


class AttemptShape(serializers.Serializer[Any]):
    """status: of the answer; null: there was none, see error."""

    status = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    excerpt = serializers.CharField(allow_blank=True)
    duration_ms = serializers.IntegerField()
    at = serializers.DateTimeField()


class DeliveryShape(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    alert = AlertShape()
    state = serializers.ChoiceField(DeliveryState.choices)
    next_at = serializers.DateTimeField(allow_null=True)
    attempts = AttemptShape(many=True)
    created_at = serializers.DateTimeField()


def alert_body(alert: Alert) -> dict[str, Any]:
    return {name: getattr(alert, name) for name in ("id", "kind", "subject", "data", "mailed_at", "created_at")}


def _secret(endpoint: WebhookEndpoint, secret: str) -> dict[str, Any]:
    return {**dict(WebhookShape(endpoint).data), "secret": secret}


def _delivery(delivery: WebhookDelivery) -> dict[str, Any]:
    attempts = [dict(AttemptShape(attempt).data) for attempt in delivery.attempts.order_by("id")]
    is_due = delivery.state == DeliveryState.PENDING
    kept = {name: getattr(delivery, name) for name in ("id", "state", "created_at")}
    next_at = delivery.next_at if is_due else None
    return {**kept, "alert": alert_body(delivery.alert), "next_at": next_at, "attempts": attempts}


class AlertsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="alerts_list", parameters=PAGE_PARAMETERS, responses=page_of("AlertPage", AlertShape))
    def get(self, request: Request) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            page = keyset_page(Alert.objects.filter(tenant=tenant), request)
            return Response(page.body(alert_body))


class OperatorAlertsApi(OperatorView):
    @extend_schema(
        operation_id="operator_alerts_list",
        parameters=PAGE_PARAMETERS,
        responses=page_of("OperatorAlertPage", AlertShape),
    )
    def get(self, request: Request) -> Response:
        """Those that are nobody's but the operators'."""
        with tenant_scope(ALL_TENANTS):
            page = keyset_page(Alert.objects.filter(tenant=None), request)
            return Response(page.body(alert_body))


class WebhooksApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "webhooks:write"

    class Input(serializers.Serializer[Any]):
        """kinds: the alerts it gets; empty or left out: all."""

        url = serializers.CharField(max_length=2000)
        kinds = serializers.ListField(child=serializers.ChoiceField(KINDS), max_length=20, default=list)

        class Meta:
            ref_name = "CreateWebhook"

    @extend_schema(
        operation_id="webhooks_list", parameters=PAGE_PARAMETERS, responses=page_of("WebhookPage", WebhookShape)
    )
    def get(self, request: Request) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            page = keyset_page(WebhookEndpoint.objects.filter(tenant=tenant), request)
            return Response(page.body(lambda endpoint: dict(WebhookShape(endpoint).data)))

    @extend_schema(
        operation_id="webhooks_create",
        request=Input,
        responses={201: WebhookWithSecretShape, 400: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        found, tenant = checked(self.Input(data=request.data)), tenant_of(request)
        with tenant_scope(tenant.id):
            endpoint, secret = create_endpoint(
                tenant=tenant, url=found["url"], kinds=sorted(set(found["kinds"])), actor=caller(request).actor
            )
            return Response(_secret(endpoint, secret), status=201)


class WebhookApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "webhooks:write"
    used = frozenset({"failures", "failing_since"})

    class Input(serializers.Serializer[Any]):
        """What is left out stays as it is. enabled: true also forgets past failures."""

        url = serializers.CharField(max_length=2000, required=False)
        kinds = serializers.ListField(child=serializers.ChoiceField(KINDS), max_length=20, required=False)
        enabled = serializers.BooleanField(required=False)

        class Meta:
            ref_name = "ChangeWebhook"

    @extend_schema(operation_id="webhooks_get", responses={200: WebhookShape, 404: ErrorBody})
    def get(self, request: Request, endpoint_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id), transaction.atomic():
            return Response(dict(WebhookShape(endpoint_named(tenant, endpoint_id)).data))

    @extend_schema(
        operation_id="webhooks_change", request=Input, responses={200: WebhookShape, 400: ErrorBody, 404: ErrorBody}
    )
    def patch(self, request: Request, endpoint_id: str) -> Response:
        found, tenant = checked(self.Input(data=request.data)), tenant_of(request)
        wanted = {name: found.get(name) for name in ("url", "kinds", "enabled")}
        with tenant_scope(tenant.id):
            endpoint = change_endpoint(tenant=tenant, endpoint_id=endpoint_id, actor=caller(request).actor, **wanted)
            return Response(dict(WebhookShape(endpoint).data))

    @extend_schema(operation_id="webhooks_delete", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, endpoint_id: str) -> Response:
        """With what was sent to it."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            delete_endpoint(tenant=tenant, endpoint_id=endpoint_id, actor=caller(request).actor)
        return Response(status=204)


class RotateWebhookApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "webhooks:write"

    @extend_schema(
        operation_id="webhooks_rotate", request=None, responses={200: WebhookWithSecretShape, 404: ErrorBody}
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        """A new secret; for a day messages are signed with the one before as well."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            endpoint, secret = rotate_secret(tenant=tenant, endpoint_id=endpoint_id, actor=caller(request).actor)
            return Response(_secret(endpoint, secret))


class TestWebhookApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "webhooks:write"

    @extend_schema(operation_id="webhooks_test", request=None, responses={202: None, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, endpoint_id: str) -> Response:
        """Send it a message of kind `webhook.test`; its deliveries show what came of it."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id), transaction.atomic():
            send_test(tenant=tenant, endpoint_id=endpoint_id)
        return Response(status=202)


class DeliveriesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "webhooks:write"

    @extend_schema(
        operation_id="webhooks_deliveries",
        parameters=[OpenApiParameter("state", str, enum=(_ANY, *DeliveryState.values)), *PAGE_PARAMETERS],
        responses={200: page_of("DeliveryPage", DeliveryShape), 400: ErrorBody, 404: ErrorBody},
    )
    def get(self, request: Request, endpoint_id: str) -> Response:
        """Newest first, each with every attempt."""
        tenant, state = tenant_of(request), choice(request, "state", (_ANY, *DeliveryState.values))
        with tenant_scope(tenant.id), transaction.atomic():
            endpoint_named(tenant, endpoint_id)
            rows = WebhookDelivery.objects.filter(tenant=tenant, endpoint_id=endpoint_id).select_related("alert")
            rows = rows if state == _ANY else rows.filter(state=state)
            return Response(keyset_page(rows, request).body(_delivery))


class ResendApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "webhooks:write"

    @extend_schema(operation_id="webhooks_resend", request=None, responses={200: DeliveryShape, 404: ErrorBody})
    def post(self, request: Request, delivery_id: int) -> Response:
        """Send it again, under the same webhook-id."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(_delivery(send_again(tenant=tenant, delivery_id=delivery_id)))
