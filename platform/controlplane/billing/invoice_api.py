"""Invoices over HTTP: a tenant reads its own, an operator books on them what happened since."""

from decimal import Decimal
from typing import Any, ClassVar, Final

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.invoice_pdf import invoice_pdf
from controlplane.billing.invoice_shapes import (
    FullInvoiceShape,
    InvoiceEntryShape,
    InvoiceLineShape,
    InvoiceShape,
    ProfileShape,
    entry_body,
    full_invoice_body,
    invoice_body,
    profile_body,
)
from controlplane.billing.invoices import invoice_named, invoices_of, number_text
from controlplane.billing.models import EntryKind
from controlplane.billing.operator_api import OperatorView, checked, tenant_named
from controlplane.billing.profiles import ProfileChanges, change_profile, profile_of
from controlplane.csv_export import csv_lines, csv_response
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.models import Tenant
from tenants.scope import tenant_scope

_PDF: Final = {(200, "application/pdf"): OpenApiResponse(OpenApiTypes.BINARY), 404: ErrorBody}


class InvoicesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(
        operation_id="invoices_list", parameters=PAGE_PARAMETERS, responses=page_of("InvoicePage", InvoiceShape)
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        return _page(tenant_of(request), request)


class InvoiceApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="invoices_get", responses={200: FullInvoiceShape, 404: ErrorBody})
    def get(self, request: Request, invoice_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(full_invoice_body(invoice_named(tenant, invoice_id)))


class InvoicePdfApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="invoices_pdf", responses=_PDF)
    def get(self, request: Request, invoice_id: str) -> HttpResponse:
        """The same invoice is the same file, byte for byte."""
        return _pdf(tenant_of(request), invoice_id)


class InvoiceCsvApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    @extend_schema(operation_id="invoices_csv", responses={(200, "text/csv"): OpenApiTypes.STR, 404: ErrorBody})
    def get(self, request: Request, invoice_id: str) -> StreamingHttpResponse:
        """The lines, which add up to the subtotal."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            invoice = invoice_named(tenant, invoice_id)
        lines = [{**line, **{name: Decimal(line[name]) for name in ("exact", "amount")}} for line in invoice.lines]
        name = number_text("invoice", invoice.number)
        return csv_response(f"{name}.csv", csv_lines(tuple(InvoiceLineShape().fields), lines))


class BillingProfileApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "billing:read", "PATCH": "billing:write"}

    class Input(serializers.Serializer[Any]):
        """What is left out stays as it is."""

        name = serializers.CharField(max_length=200, allow_blank=True, required=False)
        address = serializers.CharField(max_length=500, allow_blank=True, required=False)
        tax_id = serializers.CharField(max_length=50, allow_blank=True, required=False)
        time_zone = serializers.CharField(max_length=64, required=False)

        class Meta:
            ref_name = "ChangeBillingProfile"

    @extend_schema(operation_id="billing_profile_get", responses=ProfileShape)
    def get(self, request: Request) -> Response:
        return Response(profile_body(profile_of(tenant_of(request))))

    @extend_schema(operation_id="billing_profile_change", request=Input, responses={200: ProfileShape, 400: ErrorBody})
    def patch(self, request: Request) -> Response:
        """Whom invoices name, and in which zone a month begins. Invoices that were issued stay as they are."""
        changes = ProfileChanges(**checked(self.Input(data=request.data)))
        profile = change_profile(tenant=tenant_of(request), changes=changes, actor=caller(request).actor)
        return Response(profile_body(profile))


class TenantBillingApi(OperatorView):
    class Input(BillingProfileApi.Input):
        """What is left out stays as it is. tax_rate: percent."""

        anchor = serializers.DateField(required=False)
        tax_name = serializers.CharField(max_length=50, required=False)
        tax_rate = serializers.DecimalField(max_digits=6, decimal_places=3, min_value=0, max_value=100, required=False)
        payment_days = serializers.IntegerField(min_value=0, max_value=365, required=False)

        class Meta:
            ref_name = "ChangeTenantBilling"

    @extend_schema(operation_id="operator_billing_get", responses={200: ProfileShape, 404: ErrorBody})
    def get(self, request: Request, tenant_id: str) -> Response:
        return Response(profile_body(profile_of(tenant_named(tenant_id))))

    @extend_schema(
        operation_id="operator_billing_change",
        request=Input,
        responses={200: ProfileShape, 400: ErrorBody, 404: ErrorBody},
    )
    def patch(self, request: Request, tenant_id: str) -> Response:
        """Taxes, terms of payment, and when periods begin."""
        changes = ProfileChanges(**checked(self.Input(data=request.data)))
        profile = change_profile(tenant=tenant_named(tenant_id), changes=changes, actor=caller(request).actor)
        return Response(profile_body(profile))


class TenantInvoicesApi(OperatorView):
    @extend_schema(
        operation_id="operator_invoices_list",
        parameters=PAGE_PARAMETERS,
        responses={200: page_of("OperatorInvoicePage", InvoiceShape), 404: ErrorBody},
    )
    def get(self, request: Request, tenant_id: str) -> Response:
        return _page(tenant_named(tenant_id), request)


class TenantInvoiceApi(OperatorView):
    @extend_schema(operation_id="operator_invoices_get", responses={200: FullInvoiceShape, 404: ErrorBody})
    def get(self, request: Request, tenant_id: str, invoice_id: str) -> Response:
        tenant = tenant_named(tenant_id)
        with tenant_scope(tenant.id):
            return Response(full_invoice_body(invoice_named(tenant, invoice_id)))


class TenantInvoicePdfApi(OperatorView):
    @extend_schema(operation_id="operator_invoices_pdf", responses=_PDF)
    def get(self, request: Request, tenant_id: str, invoice_id: str) -> HttpResponse:
        return _pdf(tenant_named(tenant_id), invoice_id)


class InvoiceEntriesApi(OperatorView):
    class Input(serializers.Serializer[Any]):
        """amount: whole cents, tax included. reference: the same one again books nothing more."""

        kind = serializers.ChoiceField(EntryKind.choices)
        amount = serializers.DecimalField(max_digits=18, decimal_places=2)
        reason = serializers.CharField(max_length=500)
        reference = serializers.CharField(max_length=100, required=False)

        class Meta:
            ref_name = "BookInvoiceEntry"

    @extend_schema(
        operation_id="operator_invoices_book",
        request=Input,
        responses={201: InvoiceEntryShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str, invoice_id: str) -> Response:
        """A payment, a credit note, a write-off or a refund. The invoice itself never changes."""
        found = checked(self.Input(data=request.data))
        entry = book_entry(
            tenant=tenant_named(tenant_id),
            invoice_id=invoice_id,
            kind=EntryKind(found["kind"]),
            amount=found["amount"],
            reason=found["reason"],
            reference=found.get("reference"),
            actor=caller(request).actor,
        )
        return Response(entry_body(entry), status=201)


def _page(tenant: Tenant, request: Request) -> Response:
    with tenant_scope(tenant.id):
        return Response(keyset_page(invoices_of(tenant), request).body(invoice_body))


def _pdf(tenant: Tenant, invoice_id: str) -> HttpResponse:
    with tenant_scope(tenant.id):
        invoice = invoice_named(tenant, invoice_id)
        response = HttpResponse(invoice_pdf(invoice), content_type="application/pdf")
    name = number_text("invoice", invoice.number)
    response["Content-Disposition"] = f'attachment; filename="{name}.pdf"'
    return response
