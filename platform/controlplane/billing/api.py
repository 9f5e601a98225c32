"""Prices, credit and statements over HTTP, as a tenant sees its own."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.costing import money_text
from controlplane.billing.earnings import earning_body, total_of
from controlplane.billing.grants import grants_of
from controlplane.billing.models import Statement
from controlplane.billing.prices import prices_in_force
from controlplane.billing.shapes import (
    GrantShape,
    PriceShape,
    StatementShape,
    StatementWithLinesShape,
    grant_body,
    line_body,
    price_body,
    statement_body,
)
from controlplane.errors import NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, keyset_page, page_of, tenant_of
from tenants.scope import tenant_scope


class PricesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(operation_id="prices_list", parameters=PAGE_PARAMETERS, responses=page_of("PricePage", PriceShape))
    def get(self, request: Request) -> Response:
        """The prices in force now that may apply to the tenant. The most specific one applies: an adapter's before a
        tenant's before the base model's."""
        return Response(keyset_page(prices_in_force(tenant=tenant_of(request)), request).body(price_body))


class CreditApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(
        operation_id="grants_list", parameters=PAGE_PARAMETERS, responses=page_of("OwnGrantPage", GrantShape)
    )
    def get(self, request: Request) -> Response:
        """Credit that was given, with what is left of it. What expires first is used first."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(keyset_page(grants_of(tenant), request).body(grant_body))


class StatementsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(
        operation_id="statements_list", parameters=PAGE_PARAMETERS, responses=page_of("StatementPage", StatementShape)
    )
    def get(self, request: Request) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(keyset_page(Statement.objects.filter(tenant=tenant), request).body(statement_body))


class StatementApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="statements_get", responses={200: StatementWithLinesShape, 404: ErrorBody})
    def get(self, request: Request, statement_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            statement = Statement.objects.filter(tenant=tenant, id=statement_id).first()
            if statement is None:
                raise NotFound(f"There is no statement {statement_id}.")
            lines = [line_body(line) for line in statement.lines.order_by("-amount", "id")]
            earnings = list(statement.earnings.order_by("-amount", "id"))
        more = {"earnings": [earning_body(each) for each in earnings], "earned": money_text(total_of(earnings))}
        return Response({**statement_body(statement), "lines": lines, **more})
