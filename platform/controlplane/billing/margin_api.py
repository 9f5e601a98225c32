"""Cost, revenue and margin over HTTP, for operators."""

from decimal import Decimal
from typing import Any, Final, cast

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.billing.costing import DevicePrice, device_price, money_text
from controlplane.billing.margin import (
    GROUPS,
    TIMES,
    MarginGroup,
    device_numbers,
    devices,
    margin_by,
    margin_numbers,
    margin_total,
)
from controlplane.billing.margin_shapes import MarginNumbersShape, MarginRowShape, MarginShape
from controlplane.billing.operator_api import OperatorView, tenant_named
from controlplane.billing.ranges import RANGE_PARAMETERS, Range, check_steps, choice, read_range
from controlplane.csv_export import csv_lines, csv_response
from controlplane.rest import ErrorBody
from tenants.sql import Row, run_sync

_PARAMETERS: Final = [
    *RANGE_PARAMETERS,
    OpenApiParameter("group_by", str, enum=GROUPS),
    OpenApiParameter("tenant_id", str, description="only this tenant's usage"),
]
_COLUMNS: Final = tuple(MarginRowShape().fields)
_AMOUNTS: Final = frozenset(MarginNumbersShape().fields)


class MarginApi(OperatorView):
    @extend_schema(
        operation_id="operator_margin",
        parameters=_PARAMETERS,
        responses={200: MarginShape, 400: ErrorBody, 404: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """What usage earned and what it cost, by tenant, adapter, key, model, day or hour; and what idling cost."""
        span, group_by, rows = _read(request)
        price = device_price()
        found = run_sync(devices(start=span.start, end=span.end))
        asked = {"from": span.local_text(span.start), "to": span.local_text(span.end), "tz": span.zone.key}
        paid = {"cost_per_hour": money_text(price.per_hour), "cost_per_kwh": money_text(price.per_kwh)}
        body: dict[str, Any] = {**asked, "group_by": group_by, **paid}
        data = [_row(row, span, group_by, price) for row in rows]
        return Response(
            {**body, "data": data, "total": margin_total(rows, price), "device": device_numbers(found, price)}
        )


class MarginExportApi(OperatorView):
    @extend_schema(
        operation_id="operator_margin_export",
        parameters=_PARAMETERS,
        responses={(200, "text/csv"): OpenApiTypes.STR, 400: ErrorBody, 404: ErrorBody},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The same rows, as CSV."""
        span, group_by, rows = _read(request)
        price = device_price()
        lines = (_plain(_row(row, span, group_by, price)) for row in rows)
        return csv_response("margin.csv", csv_lines(_COLUMNS, lines))


def _read(request: Request) -> tuple[Range, MarginGroup, list[Row]]:
    span = read_range(request)
    group_by = cast(MarginGroup, choice(request, "group_by", GROUPS))
    if group_by in TIMES:
        check_steps(span, group_by)
    wanted = request.GET.get("tenant_id")
    tenant_id = tenant_named(wanted).id if wanted else None
    plan = margin_by(start=span.start, end=span.end, group_by=group_by, tenant_id=tenant_id, tz=span.zone.key)
    return span, group_by, run_sync(plan)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Amounts as numbers: a cell of text must not begin with a minus."""
    return {name: Decimal(value) if name in _AMOUNTS and value is not None else value for name, value in row.items()}


def _row(row: Row, span: Range, group_by: MarginGroup, price: DevicePrice) -> dict[str, Any]:
    numbers = margin_numbers(row, price)
    if group_by not in TIMES:
        return {"group": row["group"], "label": row["label"], "tenant": row["tenant"], **numbers}
    at = span.step_text(row["at"], row["first"], group_by)
    label = at[:10] if group_by == "day" else f"{at[:10]} {at[11:16]}"
    return {"group": at, "label": label, "tenant": None, **numbers}
