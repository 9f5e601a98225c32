"""Where a tenant's adapters are just now: on the device, in the host's memory, or on disk."""

from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.states import State
from controlplane.api_view import APIView
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.rest import Allowed, tenant_of
from tenants.scope import tenant_scope

PATIENCE_SECONDS: Final = 1.0
_ON_DISK: Final = "disk"
# What the engine calls its tiers, and what people do.
_PLACES: Final = {"slot": "device", "host": "host", "loading": "loading", "none": _ON_DISK}


class ResidencyShape(serializers.Serializer[Any]):
    """device: a request runs at once. host: a copy away. loading: on its way. disk: to be read first."""

    version_id = serializers.CharField()
    place = serializers.ChoiceField(["device", "host", "loading", "disk"])


class ResidencyApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "adapters:read"

    class Output(serializers.Serializer[Any]):
        """is_known: false while the engine does not answer; nothing is resident then."""

        is_known = serializers.BooleanField()
        data = ResidencyShape(many=True)  # type: ignore[assignment]  # a field, whatever its name

        class Meta:
            ref_name = "Residency"

    @extend_schema(operation_id="adapters_residency", responses=Output)
    def get(self, request: Request) -> Response:
        """Of every version that is ready."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            rows = AdapterVersion.objects.filter(tenant=tenant, state=State.READY)
            digests = dict(rows.values_list("id", "digest"))
        tiers = _tiers(sorted({digest for digest in digests.values() if digest}))
        data = [
            {"version_id": version_id, "place": _PLACES[(tiers or {}).get(digest or "", "none")]}
            for version_id, digest in digests.items()
        ]
        return Response({"is_known": tiers is not None, "data": data})


def _tiers(digests: list[str]) -> dict[str, str] | None:
    """None where the engine is away."""
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            return dict(engine.locate(digests))
    except EngineGone:
        return None
