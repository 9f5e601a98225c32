"""The audit log, read: a tenant's own by its owners and admins, everybody's by operators; as pages and as CSV."""

from collections.abc import Iterable
from typing import Any, Final

from django.db import models
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.csv_export import csv_lines, csv_response
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, OperatorOnly, keyset_page, page_of, tenant_of
from tenants.models import ApiKey, AuditRow, Membership, User
from tenants.scope import ALL_TENANTS, tenant_scope

CSV_COLUMNS: Final = ("at", "actor", "actor_name", "action", "target", "details")


class AuditFilter(serializers.Serializer[Any]):
    """What is left out does not filter. Half-open: `from` is in, `to` is not."""

    actor = serializers.CharField(required=False, max_length=64, help_text="`usr_...`, `key_...` or `system`")
    action = serializers.CharField(required=False, max_length=64, help_text="`key.issue`, or `key.` for all of a kind")
    target = serializers.CharField(required=False, max_length=64)
    to = serializers.DateTimeField(required=False)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.DateTimeField(required=False)}


class OperatorAuditFilter(AuditFilter):
    tenant = serializers.CharField(required=False, max_length=64)


class AuditShape(serializers.Serializer[Any]):
    """actor_name: a person's e-mail address or a key's name; empty for the system."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    tenant_id = serializers.CharField(allow_null=True)
    actor = serializers.CharField()
    actor_name = serializers.CharField()
    action = serializers.CharField()
    target = serializers.CharField()
    details = serializers.DictField()


class AuditApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "audit:read"

    @extend_schema(
        operation_id="audit_list",
        parameters=[AuditFilter, *PAGE_PARAMETERS],
        responses={200: page_of("AuditPage", AuditShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        return Response(audit_page(filtered(AuditFilter, request, tenant_of(request).id), request))


class AuditExportApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "audit:read"

    @extend_schema(
        operation_id="audit_export",
        parameters=[AuditFilter],
        responses={(200, "text/csv"): OpenApiTypes.STR, 400: ErrorBody},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The same rows, oldest first, as CSV."""
        rows = filtered(AuditFilter, request, tenant_of(request).id)
        return csv_response("audit.csv", csv_lines(CSV_COLUMNS, exported(rows)))


class OperatorAuditApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_audit_list",
        parameters=[OperatorAuditFilter, *PAGE_PARAMETERS],
        responses={200: page_of("OperatorAuditPage", AuditShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        return Response(audit_page(filtered(OperatorAuditFilter, request, request.GET.get("tenant")), request))


def filtered(shape: type[AuditFilter], request: Request, tenant_id: str | None) -> models.QuerySet[AuditRow]:
    """tenant_id: None = of every tenant, and of none."""
    wanted = shape(data=request.GET.dict())
    wanted.is_valid(raise_exception=True)
    given = wanted.validated_data
    rows = AuditRow.objects.all()
    if tenant_id:
        rows = rows.filter(tenant_id=tenant_id)
    for field in ("actor", "target"):
        if field in given:
            rows = rows.filter(**{field: given[field]})
    if "action" in given:
        kind = "action__startswith" if given["action"].endswith(".") else "action"
        rows = rows.filter(**{kind: given["action"]})
    if "from" in given:
        rows = rows.filter(at__gte=given["from"])
    return rows.filter(at__lt=given["to"]) if "to" in given else rows


def audit_page(rows: models.QuerySet[AuditRow], request: Request) -> dict[str, Any]:
    page = keyset_page(rows, request, time_field="at")
    names = names_of(page.rows)
    return page.body(lambda row: audit_body(row, names))


def exported(rows: models.QuerySet[AuditRow]) -> Iterable[dict[str, Any]]:
    """In pieces, so that a long log is never in memory as a whole."""
    piece: list[AuditRow] = []
    for row in rows.order_by("at", "pk").iterator(chunk_size=500):
        piece.append(row)
        if len(piece) == 500:
            yield from bodies(piece)
            piece = []
    yield from bodies(piece)


def bodies(rows: list[AuditRow]) -> Iterable[dict[str, Any]]:
    names = names_of(rows)
    return [audit_body(row, names) for row in rows]


def audit_body(row: AuditRow, names: dict[str, str]) -> dict[str, Any]:
    fields = ("id", "at", "tenant_id", "actor", "action", "target", "details")
    return {**{field: getattr(row, field) for field in fields}, "actor_name": names.get(row.actor, "")}


def names_of(rows: list[AuditRow]) -> dict[str, str]:
    """What people call the actors. An operator is not known by name to those outside the platform: "operator"."""
    actors = {row.actor for row in rows}
    people = User.objects.filter(id__in=actors).values_list("id", "email", "is_operator")
    members = set(Membership.objects.filter(user_id__in=actors).values_list("user_id", flat=True))
    names = {who: email if who in members or not operator else "operator" for who, email, operator in people}
    with tenant_scope(ALL_TENANTS):
        return names | dict(ApiKey.objects.filter(id__in=actors).values_list("id", "name"))
