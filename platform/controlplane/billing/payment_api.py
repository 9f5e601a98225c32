"""Payments over HTTP: what a tenant starts, and what the provider says came of it."""

import logging
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.models import PaymentKind
from controlplane.billing.operator_api import checked
from controlplane.billing.payment_booking import take_notice
from controlplane.billing.payment_provider import Forged, PaymentProvider, configured_provider
from controlplane.billing.payment_shapes import PaymentOptionsShape, PaymentShape, StartedPaymentShape, payment_body
from controlplane.billing.payments import (
    payment_bounds,
    payment_named,
    payments_of,
    start_credit_payment,
    start_invoice_payment,
)
from controlplane.errors import InvalidRequest, NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.scope import tenant_scope

log = logging.getLogger(__name__)


def _provider() -> PaymentProvider:
    found = configured_provider()
    if found is None:
        raise NotFound("This platform takes no payments by itself: ask its operator.", code="payments_not_configured")
    return found


class PaymentsApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "billing:read", "POST": "billing:write"}

    class Input(serializers.Serializer[Any]):
        """amount: of credit, with at most 2 decimals. invoice_id: what it still asks for is paid."""

        kind = serializers.ChoiceField(PaymentKind.choices)
        amount = serializers.DecimalField(max_digits=12, decimal_places=2, required=False)
        invoice_id = serializers.CharField(max_length=32, required=False)

        class Meta:
            ref_name = "StartPayment"

    @extend_schema(
        operation_id="payments_list", parameters=PAGE_PARAMETERS, responses=page_of("PaymentPage", PaymentShape)
    )
    def get(self, request: Request) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(keyset_page(payments_of(tenant), request).body(payment_body))

    @extend_schema(
        operation_id="payments_start",
        request=Input,
        responses={201: StartedPaymentShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """Send the payer to `url`. It is paid once the payment's state says so."""
        provider, tenant = _provider(), tenant_of(request)
        found = checked(self.Input(data=request.data))
        named: dict[str, Any] = {"tenant": tenant, "provider": provider, "actor": caller(request).actor}
        if found["kind"] == PaymentKind.CREDIT:
            payment, url = start_credit_payment(amount=_needed(found, "amount"), **named)
        else:
            payment, url = start_invoice_payment(invoice_id=_needed(found, "invoice_id"), **named)
        with tenant_scope(tenant.id):
            return Response({**payment_body(payment_named(tenant, payment.id)), "url": url}, status=201)


def _needed(found: dict[str, Any], name: str) -> Any:
    if name not in found:
        raise InvalidRequest(f"{name} is missing: a payment of kind {found['kind']} needs it", param=name)
    return found[name]


class PaymentOptionsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="payments_options", responses=PaymentOptionsShape)
    def get(self, request: Request) -> Response:
        """Whether and how much can be paid here."""
        least, most = payment_bounds()
        return Response(
            {"available": configured_provider() is not None, "minimum": f"{least:f}", "maximum": f"{most:f}"}
        )


class StripeNoticesApi(APIView):
    """Stripe's webhook: its signature is what lets it in."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(operation_id="stripe_notices", request=None, responses={204: None, 400: ErrorBody, 404: ErrorBody})
    def post(self, request: Request) -> Response:
        """Events as Stripe signs them. Any number of times, in any order."""
        provider = _provider()
        try:
            notice = provider.read_notice(request._request.body, request.headers.get("Stripe-Signature", ""))
        except Forged as why:
            log.warning("a notice that Stripe did not sign was refused: %s", why)
            raise InvalidRequest(
                "The Stripe-Signature header does not fit this body, or is older than five minutes.",
                code="invalid_signature",
            ) from None
        take_notice(provider.name, notice)
        return Response(status=204)
