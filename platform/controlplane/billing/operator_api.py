"""Money as an operator handles it: prices, grants, closing, and records that disagree."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.discrepancies import resolve_discrepancy
from controlplane.billing.grants import grant_credit, grants_of
from controlplane.billing.models import Discrepancy, GrantKind, Price
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.shapes import (
    DiscrepancyShape,
    GrantShape,
    PriceShape,
    StatementShape,
    grant_body,
    price_body,
    statement_body,
)
from controlplane.billing.statements import close_period
from controlplane.errors import NotFound
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, OperatorOnly, caller, keyset_page, page_of
from tenants.models import Tenant
from tenants.scope import tenant_scope

MAX_GRANT = 10**9
_RATES = ("input", "cached_input", "output", "adapter_surcharge", "batch_discount")


class OperatorView(APIView):
    permission_classes = (OperatorOnly,)


def tenant_named(tenant_id: str) -> Tenant:
    found = Tenant.objects.filter(id=tenant_id).first()
    if found is None:
        raise NotFound(f"There is no tenant {tenant_id}.")
    return found


def checked(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    found: dict[str, Any] = serializer.validated_data
    return found


def rates_of(found: dict[str, Any]) -> Rates:
    return Rates(**{name: found[name] for name in _RATES if name in found})


class OperatorPricesApi(OperatorView):
    class Input(serializers.Serializer[Any]):
        """Amounts per million tokens, such as 2.5. tenant_id and adapter_id narrow the price down.

        adapter_surcharge: on top of each rate where the request runs an adapter. batch_discount: percent off batches.
        """

        base_model = serializers.CharField(max_length=200)
        input = serializers.DecimalField(max_digits=20, decimal_places=6)
        cached_input = serializers.DecimalField(max_digits=20, decimal_places=6)
        output = serializers.DecimalField(max_digits=20, decimal_places=6)
        adapter_surcharge = serializers.DecimalField(max_digits=20, decimal_places=6, required=False)
        batch_discount = serializers.IntegerField(min_value=0, max_value=100, required=False)
        tenant_id = serializers.CharField(required=False, allow_null=True)
        adapter_id = serializers.RegexField(r"^adp_\w{1,28}$", required=False, allow_null=True)
        effective_from = serializers.DateTimeField(required=False, allow_null=True)

        class Meta:
            ref_name = "SetPrice"

    @extend_schema(
        operation_id="operator_prices_list",
        parameters=PAGE_PARAMETERS,
        responses=page_of("OperatorPricePage", PriceShape),
    )
    def get(self, request: Request) -> Response:
        """Every price there was, is and will be."""
        return Response(keyset_page(Price.objects.all(), request).body(price_body))

    @extend_schema(
        operation_id="operator_prices_set",
        request=Input,
        responses={201: PriceShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A new price; it ends the one of the same scope before it. Requests admitted earlier keep theirs."""
        found = checked(self.Input(data=request.data))
        price = set_price(
            base_model=found["base_model"],
            rates=rates_of(found),
            tenant=tenant_named(found["tenant_id"]) if found.get("tenant_id") else None,
            adapter_id=found.get("adapter_id"),
            effective_from=found.get("effective_from"),
            actor=caller(request).actor,
        )
        return Response(price_body(price), status=201)


class GrantsApi(OperatorView):
    class Input(serializers.Serializer[Any]):
        """kind: promo (a present) or paid (bought in advance). reference: the same one again gives nothing more."""

        amount = serializers.DecimalField(max_digits=16, decimal_places=6, min_value=0, max_value=MAX_GRANT)
        kind = serializers.ChoiceField((GrantKind.PROMO, GrantKind.PAID), default=GrantKind.PROMO)
        reference = serializers.CharField(max_length=100, required=False)
        expires_at = serializers.DateTimeField(required=False, allow_null=True)

        class Meta:
            ref_name = "GiveGrant"

    @extend_schema(
        operation_id="operator_grants_list", parameters=PAGE_PARAMETERS, responses=page_of("GrantPage", GrantShape)
    )
    def get(self, request: Request, tenant_id: str) -> Response:
        tenant = tenant_named(tenant_id)
        with tenant_scope(tenant.id):
            return Response(keyset_page(grants_of(tenant), request).body(grant_body))

    @extend_schema(
        operation_id="operator_grants_give",
        request=Input,
        responses={201: GrantShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str) -> Response:
        found = checked(self.Input(data=request.data))
        grant = grant_credit(
            tenant=tenant_named(tenant_id),
            amount=found["amount"],
            kind=GrantKind(found["kind"]),
            reference=found.get("reference"),
            expires_at=found.get("expires_at"),
            actor=caller(request).actor,
        )
        with tenant_scope(tenant_id):
            return Response(grant_body(grant), status=201)


class CloseApi(OperatorView):
    class Input(serializers.Serializer[Any]):
        """until: exclusive, not in the future; now unless told."""

        until = serializers.DateTimeField(required=False)

        class Meta:
            ref_name = "ClosePeriod"

    @extend_schema(
        operation_id="operator_close_period",
        request=Input,
        responses={200: StatementShape, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str) -> Response:
        """Freeze the open period into a statement. Closing the same instant again returns the same statement."""
        until = checked(self.Input(data=request.data)).get("until")
        statement = close_period(tenant=tenant_named(tenant_id), until=until, actor=caller(request).actor)
        return Response(statement_body(statement))


class DiscrepanciesApi(OperatorView):
    @extend_schema(
        operation_id="operator_discrepancies_list",
        parameters=PAGE_PARAMETERS,
        responses=page_of("DiscrepancyPage", DiscrepancyShape),
    )
    def get(self, request: Request) -> Response:
        """Records that disagree, newest first; the books balance only once each is resolved."""
        page = keyset_page(Discrepancy.objects.all(), request, time_field="opened_at")
        return Response(page.body(lambda found: dict(DiscrepancyShape(found).data)))


class ResolveDiscrepancyApi(OperatorView):
    class Input(serializers.Serializer[Any]):
        note = serializers.CharField(max_length=500)

        class Meta:
            ref_name = "ResolveDiscrepancy"

    @extend_schema(
        operation_id="operator_discrepancies_resolve",
        request=Input,
        responses={200: DiscrepancyShape, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request, discrepancy_id: int) -> Response:
        """Say what was found and done. The first resolution stays."""
        note = checked(self.Input(data=request.data))["note"]
        found = resolve_discrepancy(discrepancy_id=discrepancy_id, note=note, actor=caller(request).actor)
        if found is None:
            raise NotFound(f"There is no discrepancy {discrepancy_id}.")
        return Response(dict(DiscrepancyShape(found).data))
