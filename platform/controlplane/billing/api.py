"""Usage, prices and statements over HTTP, as a tenant sees its own."""

from decimal import Decimal
from typing import Any, Literal, cast

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.billing.costing import money_text, total_numbers, usage_numbers
from controlplane.billing.grants import grants_of
from controlplane.billing.models import Statement
from controlplane.billing.prices import prices_in_force
from controlplane.billing.queries import GroupBy, Split, Step, usage_by, usage_series
from controlplane.billing.ranges import Range, check_steps, choice, read_range
from controlplane.billing.shapes import (
    GrantShape,
    PriceShape,
    SeriesShape,
    StatementShape,
    StatementWithLinesShape,
    UsageShape,
    grant_body,
    line_body,
    price_body,
    statement_body,
)
from controlplane.errors import NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, keyset_page, page_of, tenant_of
from tenants.scope import tenant_scope
from tenants.sql import Row, run_sync

_TIMES: list[Literal["day", "hour"]] = ["day", "hour"]
RANGE_PARAMETERS = [
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="inclusive; the start of this month unless told"),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="exclusive; now unless told"),
    OpenApiParameter("tz", str, description="IANA name of the zone for days, hours and bare times; UTC unless told"),
]


def _cost_per_hour() -> Decimal:
    return Decimal(settings.DEVICE_COST_PER_HOUR)


class UsageApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="usage_get",
        parameters=[*RANGE_PARAMETERS, OpenApiParameter("group_by", str, enum=["adapter", "key", "day", "hour"])],
        responses={200: UsageShape, 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """What was used and what it costs, by adapter, key, day or hour."""
        span = read_range(request)
        group_by = cast(GroupBy, choice(request, "group_by", ("adapter", "key", "day", "hour")))
        if group_by in _TIMES:
            check_steps(span, group_by)
        tenant_id = tenant_of(request).id
        rows = run_sync(
            usage_by(tenant_id=tenant_id, start=span.start, end=span.end, group_by=group_by, tz=span.zone.key)
        )
        data = [{**_group(row, span, group_by), **usage_numbers(row, _cost_per_hour())} for row in rows]
        body = {"from": span.local_text(span.start), "to": span.local_text(span.end), "tz": span.zone.key}
        return Response({**body, "data": data, "total": total_numbers(rows, _cost_per_hour())})


def _group(row: Row, span: Range, group_by: GroupBy) -> dict[str, str]:
    if group_by not in _TIMES:
        return {"group": row["group"], "label": row["label"]}
    at = span.step_text(row["at"], row["first"], group_by)
    return {"group": at, "label": at[:10] if group_by == "day" else f"{at[:10]} {at[11:16]}"}


class UsageSeriesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="usage_timeseries",
        parameters=[
            *RANGE_PARAMETERS,
            OpenApiParameter("step", str, enum=["day", "hour"]),
            OpenApiParameter("split", str, enum=["adapter", "key"]),
        ],
        responses={200: SeriesShape, 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """Usage over time, split by adapter or key. Steps without usage are left out."""
        span = read_range(request)
        step = cast(Step, choice(request, "step", ("day", "hour")))
        split = cast(Split, choice(request, "split", ("adapter", "key")))
        check_steps(span, step)
        rows = run_sync(
            usage_series(
                tenant_id=tenant_of(request).id,
                start=span.start,
                end=span.end,
                step=step,
                split=split,
                tz=span.zone.key,
            )
        )
        return Response({"step": step, "tz": span.zone.key, "data": [_point(row, span, step) for row in rows]})


def _point(row: Row, span: Range, step: Step) -> dict[str, Any]:
    return {
        "at": span.step_text(row["at"], row["first"], step),
        "group": row["group"],
        "label": row["label"],
        "requests": int(row["requests"]),
        "tokens": int(row["prompt_tokens"] + row["completion_tokens"]),
        "amount": money_text(row["amount"]),
        "cost": usage_numbers(row, _cost_per_hour())["cost"],
    }


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
        return Response({**statement_body(statement), "lines": lines})
