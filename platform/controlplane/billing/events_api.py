"""Single generations over HTTP: a list, one of them, all of them as a file."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.composition import composition_of_event
from controlplane.billing.costing import device_price, money_text
from controlplane.billing.events import OUTCOMES, event_body, events_of, oldest_first
from controlplane.billing.models import UsageEvent
from controlplane.billing.ranges import choice, read_range
from controlplane.billing.services import price_by_id
from controlplane.billing.usage_api import (
    SLICE_PARAMETERS,
    composition_body,
    read_slice,
    sees_people,
)
from controlplane.billing.usage_shapes import FullGenerationShape, GenerationShape
from controlplane.csv_export import csv_lines, streamed
from controlplane.errors import NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, keyset_page, page_of, tenant_of
from tenants.scope import tenant_scope
from tenants.sql import run_sync

_ANY: Final = "any"
_FORMATS: Final = ("csv", "jsonl")
_MEDIA: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
_COLUMNS: Final = tuple(GenerationShape().fields)
FILTERS: Final = [*SLICE_PARAMETERS, OpenApiParameter("outcome", str, enum=(_ANY, *OUTCOMES))]


def _wanted(request: Request) -> Any:
    outcome = choice(request, "outcome", (_ANY, *OUTCOMES))
    return events_of(read_slice(request, read_range(request)), None if outcome == _ANY else outcome)


class GenerationsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="generations_list",
        parameters=[*FILTERS, *PAGE_PARAMETERS],
        responses={200: page_of("GenerationPage", GenerationShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """The requests that the sums of `usage` are of, the last to end first."""
        shows, price = sees_people(request), device_price()
        page = keyset_page(_wanted(request), request, time_field="finished_at")
        return Response(page.body(lambda event: event_body(event, price, sees_people=shows)))


class GenerationApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(operation_id="generations_get", responses={200: FullGenerationShape, 404: ErrorBody})
    def get(self, request: Request, request_id: str) -> Response:
        """One request, with the rates it was charged at and what its amount is made of."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            rows = UsageEvent.objects.filter(tenant=tenant, request_id=request_id)
            event = None if "\x00" in request_id else rows.select_related("key__created_by").first()
        if event is None:
            raise NotFound(f"There is no generation {request_id[:100]}.")
        price = run_sync(price_by_id(event.price_id, adapter_id=event.adapter_id, is_batch=event.is_batch))
        parts = run_sync(composition_of_event(tenant_id=tenant.id, request_id=request_id))
        rates = {name: money_text(getattr(price, name)) for name in ("input", "cached_input", "output")}
        body = event_body(event, device_price(), sees_people=sees_people(request))
        more = {"rates": {"price_id": price.id, **rates}, "parts": composition_body(parts)}
        return Response({**body, **more, "booked_at": event.booked_at, "late": event.late})


class GenerationsExportApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="generations_export",
        parameters=[*FILTERS, OpenApiParameter("as", str, enum=_FORMATS)],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/jsonl"): OpenApiTypes.STR, 400: ErrorBody},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The same rows, oldest first: as CSV, or a JSON object a line."""
        kind = choice(request, "as", _FORMATS)
        shows, price = sees_people(request), device_price()
        rows = (event_body(event, price, sees_people=shows) for event in oldest_first(_wanted(request)))
        lines = csv_lines(_COLUMNS, rows) if kind == "csv" else _json_lines(rows)
        return streamed(f"generations.{kind}", lines, _MEDIA[kind])


def _json_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, default=lambda value: value.isoformat(), separators=(",", ":")) + "\n"
