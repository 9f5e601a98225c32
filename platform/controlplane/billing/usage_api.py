"""What was used, over HTTP: sums, series, what amounts are made of, and how fast answers were."""

from dataclasses import asdict
from typing import Any, Final, Literal, cast

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.composition import Composition, composition
from controlplane.billing.costing import (
    DevicePrice,
    cost_of_row,
    device_price,
    money_text,
    total_numbers,
    usage_numbers,
)
from controlplane.billing.latency import Spread, latency
from controlplane.billing.queries import STEPS, GroupBy, Step, usage_by, usage_series
from controlplane.billing.ranges import RANGE_PARAMETERS, Range, check_steps, choice, read_range
from controlplane.billing.shapes import SeriesShape, UsageShape
from controlplane.billing.slices import SPLITS, Slice, Split
from controlplane.billing.usage_shapes import CompositionShape, LatencyShape
from controlplane.currency import currency
from controlplane.errors import Forbidden
from controlplane.rest import Allowed, ErrorBody, caller, tenant_of
from tenants.sql import Row, run_sync

_LABEL_LENGTH: Final[dict[Step, int]] = {"day": 10, "hour": 16, "month": 7}
SLICE_PARAMETERS: Final = [
    *RANGE_PARAMETERS,
    *(OpenApiParameter(split, str, description=f"only of this {split}: a `group` of that split") for split in SPLITS),
]


def read_slice(request: Request, span: Range) -> Slice:
    """Of the caller's tenant. Forbidden for a member's, to those who may not see the members."""
    only = {split: request.GET[split] for split in SPLITS if request.GET.get(split)}
    if "member" in only:
        check_people(request)
    return Slice(tenant_of(request).id, span.start, span.end, only)


def check_people(request: Request) -> None:
    if not sees_people(request):
        raise Forbidden("Who used what is shown to those who may see the members: owners and admins.", param="member")


def sees_people(request: Request) -> bool:
    return caller(request).can("members:read")


class UsageApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="usage_get",
        parameters=[*SLICE_PARAMETERS, OpenApiParameter("group_by", str, enum=[*SPLITS, *STEPS])],
        responses={200: UsageShape, 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """What was used and what it costs: by adapter, key, member (who issued the key), model, or time."""
        span = read_range(request)
        group_by = cast(GroupBy, choice(request, "group_by", (*SPLITS, *STEPS)))
        if group_by in STEPS:
            check_steps(span, group_by)
        if group_by == "member":
            check_people(request)
        rows = run_sync(usage_by(read_slice(request, span), group_by=group_by, tz=span.zone.key))
        price = device_price()
        data = [{**_group(row, span, group_by), **usage_numbers(row, price)} for row in rows]
        return Response({**span_body(span), "currency": currency(), "data": data, "total": total_numbers(rows, price)})


def span_body(span: Range) -> dict[str, str]:
    return {"from": span.local_text(span.start), "to": span.local_text(span.end), "tz": span.zone.key}


def _group(row: Row, span: Range, group_by: GroupBy) -> dict[str, str]:
    if group_by not in STEPS:
        return {"group": row["group"], "label": row["label"]}
    at = span.step_text(row["at"], row["first"], group_by)
    return {"group": at, "label": at[: _LABEL_LENGTH[group_by]].replace("T", " ")}


class UsageSeriesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="usage_timeseries",
        parameters=[
            *SLICE_PARAMETERS,
            OpenApiParameter("step", str, enum=STEPS),
            OpenApiParameter("split", str, enum=SPLITS),
        ],
        responses={200: SeriesShape, 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """Usage over time, split. Steps without usage are left out."""
        span = read_range(request)
        step = cast(Step, choice(request, "step", STEPS))
        split = cast(Split, choice(request, "split", SPLITS))
        check_steps(span, step)
        if split == "member":
            check_people(request)
        rows = run_sync(usage_series(read_slice(request, span), step=step, split=split, tz=span.zone.key))
        price = device_price()
        data = [_point(row, span, step, price) for row in rows]
        return Response({"step": step, "tz": span.zone.key, "data": data})


def _point(row: Row, span: Range, step: Step, price: DevicePrice) -> dict[str, Any]:
    return {
        "at": span.step_text(row["at"], row["first"], step),
        "group": row["group"],
        "label": row["label"],
        "requests": int(row["requests"]),
        "tokens": int(row["prompt_tokens"] + row["completion_tokens"]),
        "amount": money_text(row["amount"]),
        "cost": money_text(cost_of_row(row, price)),
    }


class CompositionApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="usage_composition",
        parameters=SLICE_PARAMETERS,
        responses={200: CompositionShape, 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """What the amount is made of, and what the prefix cache took off it."""
        span = read_range(request)
        return Response({**span_body(span), **composition_body(run_sync(composition(read_slice(request, span))))})


def composition_body(found: Composition) -> dict[str, str | None]:
    return {name: money_text(money) for name, money in asdict(found).items()}


class LatencyApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="usage_latency", parameters=SLICE_PARAMETERS, responses={200: LatencyShape, 400: ErrorBody}
    )
    def get(self, request: Request) -> Response:
        """Milliseconds to the first token, and from one token to the next: half of the answers were as fast as p50."""
        span = read_range(request)
        found = run_sync(latency(read_slice(request, span)))
        body = {"answers": found.answers, "ttft_ms": _spread(found.ttft), "itl_ms": _spread(found.itl)}
        return Response({**span_body(span), **body})


def _spread(found: Spread | None) -> dict[Literal["p50", "p95"], float] | None:
    return {"p50": round(found.p50, 3), "p95": round(found.p95, 3)} if found else None
