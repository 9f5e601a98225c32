"""What owners ask on top for adapters they share, over HTTP: of grants and prices, which know nothing of each other."""

from decimal import Decimal
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.models import AdapterGrant
from controlplane.api_view import APIView
from controlplane.billing.costing import money_text
from controlplane.billing.earnings import open_earnings
from controlplane.billing.markups import markups_in_force, set_markup
from controlplane.billing.models import Markup
from controlplane.errors import NotFound
from controlplane.rest import Allowed, ErrorBody, caller, tenant_of
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope


class MarkupShape(serializers.Serializer[Any]):
    """Amounts per million tokens of any kind, that `grantee` pays `owner` on top. earned_per_million: what the owner
    gets of it, and earned: in all since its last statement; null for the grantee."""

    id = serializers.CharField()
    adapter_id = serializers.CharField()
    owner = serializers.CharField()
    grantee = serializers.CharField()
    per_million = serializers.CharField()
    earned_per_million = serializers.CharField(allow_null=True)
    earned = serializers.CharField(allow_null=True)
    effective_from = serializers.DateTimeField()

    class Meta:
        ref_name = "Markup"


class MarkupsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    class Output(serializers.Serializer[Any]):
        """max_per_million, owner_percent: what the platform allows, and how much of it is the owner's, of mark-ups that
        are set now."""

        data = MarkupShape(many=True)  # type: ignore[assignment]  # a field, whatever its name
        max_per_million = serializers.CharField()
        owner_percent = serializers.IntegerField()

        class Meta:
            ref_name = "Markups"

    @extend_schema(operation_id="markups_list", responses=Output)
    def get(self, request: Request) -> Response:
        """Those in force now: that the tenant asks of others, and that it pays."""
        tenant = tenant_of(request)
        earned = open_earnings(tenant)
        data = [_body(markup, tenant, earned) for markup in markups_in_force(tenant=tenant)]
        rules = {"max_per_million": settings.MAX_MARKUP, "owner_percent": 100 - settings.MARKUP_SHARE_PERCENT}
        return Response({"data": data, **rules})


class GrantMarkupApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "adapters:write"

    class Input(serializers.Serializer[Any]):
        """per_million: of tokens of any kind; 0: none."""

        per_million = serializers.DecimalField(max_digits=20, decimal_places=6)

        class Meta:
            ref_name = "SetMarkup"

    class Output(serializers.Serializer[Any]):
        """null: nothing on top."""

        markup = MarkupShape(allow_null=True)

        class Meta:
            ref_name = "GrantMarkup"

    @extend_schema(
        operation_id="adapter_grants_markup",
        request=Input,
        responses={200: Output, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def put(self, request: Request, adapter_id: str, grant_id: str) -> Response:
        """What that tenant pays on top for the adapter, for requests from now on. The platform bounds it and keeps a
        share."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant = tenant_of(request)
        markup = set_markup(
            tenant=tenant,
            adapter_id=adapter_id,
            grantee=_grantee(tenant, adapter_id, grant_id),
            per_million=data.validated_data["per_million"],
            actor=caller(request).actor,
        )
        set_now = [each for each in markups_in_force(tenant=tenant) if markup and each.id == markup.id]
        earned = open_earnings(tenant)
        return Response({"markup": next((_body(each, tenant, earned) for each in set_now), None)})


def _grantee(tenant: Tenant, adapter_id: str, grant_id: str) -> Tenant:
    with tenant_scope(ALL_TENANTS):  # of the other tenant, its own view shows the name alone
        rows = AdapterGrant.objects.filter(tenant=tenant, adapter_id=adapter_id, id=grant_id)
        grant = None if "\x00" in grant_id + adapter_id else rows.select_related("grantee").first()
    if grant is None:
        raise NotFound(f"There is no grant {grant_id[:50]}.")
    return grant.grantee


def _body(markup: Markup, tenant: Tenant, earned: dict[tuple[str, str], Decimal]) -> dict[str, Any]:
    is_own = markup.tenant_id == tenant.id
    so_far = earned.get((markup.adapter_id, markup.grantee_id), Decimal(0))
    return {
        "id": markup.id,
        "adapter_id": markup.adapter_id,
        "owner": markup.tenant.slug,
        "grantee": markup.grantee.slug,
        "per_million": money_text(markup.per_million),
        "earned_per_million": money_text(markup.earned) if is_own else None,
        "earned": money_text(so_far) if is_own else None,
        "effective_from": markup.effective_from,
    }
