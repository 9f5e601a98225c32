"""What a tenant agreed to, over HTTP."""

from decimal import Decimal
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.agreements import agree, agreement_before
from controlplane.billing.models import Agreement
from controlplane.billing.operator_api import OperatorView, checked, tenant_named
from controlplane.billing.terms import Terms, Tier
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.scope import tenant_scope

_MODES = ("graduated", "volume")


class TierShape(serializers.Serializer[Any]):
    """From at_least of a period's usage on, discount percent less."""

    at_least = serializers.DecimalField(max_digits=18, decimal_places=2, min_value=0)
    discount = serializers.DecimalField(max_digits=5, decimal_places=2, min_value=0, max_value=100)


class AgreementShape(serializers.Serializer[Any]):
    """minimum_fee (money) and included_tokens: per period. tier_mode: with `graduated`, a tier's discount is on the
    money within it; with `volume`, that of the tier that is reached is on all of them."""

    id = serializers.CharField()
    minimum_fee = serializers.CharField()
    included_tokens = serializers.IntegerField()
    tier_mode = serializers.ChoiceField(_MODES)
    tiers = TierShape(many=True)
    effective_from = serializers.DateTimeField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Agreement"


class CurrentAgreementShape(serializers.Serializer[Any]):
    """null: tokens at their prices, and nothing else."""

    agreement = AgreementShape(allow_null=True)


def agreement_body(agreement: Agreement) -> dict[str, Any]:
    kept = ("id", "included_tokens", "tier_mode", "tiers", "effective_from", "created_at")
    return {**{name: getattr(agreement, name) for name in kept}, "minimum_fee": f"{agreement.minimum_fee:.2f}"}


class AgreementApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="agreement_get", responses=CurrentAgreementShape)
    def get(self, request: Request) -> Response:
        """The one in force now."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            found = agreement_before(tenant=tenant, end=timezone.now())
        return Response({"agreement": agreement_body(found) if found else None})


class TenantAgreementsApi(OperatorView):
    class Input(serializers.Serializer[Any]):
        """tiers: ascending in both. effective_from: now unless told; a statement goes by the agreement that is in force
        at its period's last instant."""

        minimum_fee = serializers.DecimalField(max_digits=12, decimal_places=2, min_value=0, default=Decimal(0))
        included_tokens = serializers.IntegerField(min_value=0, max_value=10**15, default=0)
        tier_mode = serializers.ChoiceField(_MODES, default="graduated")
        tiers = TierShape(many=True, default=list)
        effective_from = serializers.DateTimeField(required=False)

        class Meta:
            ref_name = "SetAgreement"

    @extend_schema(
        operation_id="operator_agreements_list",
        parameters=PAGE_PARAMETERS,
        responses={200: page_of("AgreementPage", AgreementShape), 404: ErrorBody},
    )
    def get(self, request: Request, tenant_id: str) -> Response:
        """Every one there was, is and will be."""
        tenant = tenant_named(tenant_id)
        with tenant_scope(tenant.id):
            return Response(keyset_page(Agreement.objects.filter(tenant=tenant), request).body(agreement_body))

    @extend_schema(
        operation_id="operator_agreements_set",
        request=Input,
        responses={201: AgreementShape, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str) -> Response:
        """A new agreement; it replaces the one before from its start on."""
        found = checked(self.Input(data=request.data))
        tiers = tuple(Tier(each["at_least"], each["discount"]) for each in found["tiers"])
        agreement = agree(
            tenant=tenant_named(tenant_id),
            terms=Terms(found["minimum_fee"], found["included_tokens"], found["tier_mode"], tiers),
            effective_from=found.get("effective_from"),
            actor=caller(request).actor,
        )
        return Response(agreement_body(agreement), status=201)
