"""The adapters of a tenant, over HTTP."""

from typing import IO, Any, ClassVar, cast

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.aliases import roll_back, set_alias
from controlplane.adapters.deletion import delete_adapter, delete_version
from controlplane.adapters.downloads import file_response
from controlplane.adapters.imports import start_import
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.parser import RawBody, part_length
from controlplane.adapters.pins import set_pin
from controlplane.adapters.queries import adapter_of, adapters_like, version_of
from controlplane.adapters.shapes import (
    AdapterShape,
    SplitShape,
    StoredShape,
    VersionShape,
    adapter_body,
    stored_body,
    version_body,
)
from controlplane.adapters.states import State
from controlplane.adapters.uploads import DeclaredFile, finish_upload, start_upload, store_upload_part
from controlplane.api_view import APIView
from controlplane.errors import InvalidRequest
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.models import Tenant
from tenants.scope import tenant_scope

STATES = ("empty", *State.live())
READ = "adapters:read"
WRITE = "adapters:write"


class AdapterView(APIView):
    permission_classes = (Allowed,)


class AdaptersApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "POST": WRITE}

    class Input(serializers.Serializer[Any]):
        class File(serializers.Serializer[Any]):
            name = serializers.CharField(max_length=200)
            size = serializers.IntegerField(min_value=1)
            sha256 = serializers.RegexField(r"^[0-9a-f]{64}$", error_messages={"invalid": "64 hex digits, lower case"})

            class Meta:
                ref_name = "DeclaredFile"

        name = serializers.CharField(max_length=200)
        base_model = serializers.CharField(max_length=200)
        files = File(many=True, allow_empty=False)

        class Meta:
            ref_name = "StartUpload"

    class Output(serializers.Serializer[Any]):
        adapter = AdapterShape()
        version = VersionShape()

        class Meta:
            ref_name = "StartedUpload"

    @extend_schema(
        operation_id="adapters_list",
        parameters=[
            OpenApiParameter("q", str, description="a part of the name"),
            OpenApiParameter("state", str, enum=STATES, description="of the newest version"),
            *PAGE_PARAMETERS,
        ],
        responses={200: page_of("AdapterPage", AdapterShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            rows = adapters_like(tenant, request.query_params.get("q", ""), _state(request))
            return Response(keyset_page(rows, request).body(adapter_body))

    @extend_schema(
        operation_id="adapters_start_upload",
        request=Input,
        responses={201: Output, 400: ErrorBody, 409: ErrorBody, 413: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A new version of the adapter of that name, which is made when there is none. Then send its files."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        found, tenant = data.validated_data, tenant_of(request)
        who = caller(request)
        files = [DeclaredFile(**file) for file in found["files"]]
        version = start_upload(
            tenant=tenant,
            actor=who.actor,
            user=who.user,
            name=found["name"],
            base_model=found["base_model"],
            files=files,
        )
        return _started(tenant, version, 201)


def _state(request: Request) -> str | None:
    state = request.query_params.get("state")
    if state and state not in STATES:
        raise InvalidRequest(f"state is {state[:50]!r}: use one of {', '.join(STATES)}", param="state")
    return state or None


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class SourceField(serializers.Field[Any, Any, Any, Any]):
    """One text, or a list of texts."""

    def to_internal_value(self, data: Any) -> str | list[str]:
        texts = data if isinstance(data, list) else [data]
        if not all(isinstance(text, str) and text for text in texts):
            raise serializers.ValidationError("it is neither a text nor a list of texts")
        return cast(str | list[str], data)

    def to_representation(self, value: Any) -> Any:
        return value


class ImportApi(AdapterView):
    action_needed = WRITE

    class Input(serializers.Serializer[Any]):
        """source: the https URL of a folder with the adapter's files; or a list of the files' own https URLs; or
        `s3://bucket/prefix`; or `org/name[@revision]` of the hub."""

        name = serializers.CharField(max_length=200)
        base_model = serializers.CharField(max_length=200)
        source = SourceField()  # type: ignore[assignment]  # DRF takes it for a field, whatever its name

        class Meta:
            ref_name = "ImportAdapter"

    @extend_schema(
        operation_id="adapters_import",
        request=Input,
        responses={202: AdaptersApi.Output, 400: ErrorBody, 409: ErrorBody, 413: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A new version whose files are fetched. Its `files` tell how far it is, its `state` the rest."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who = tenant_of(request), caller(request)
        version = start_import(tenant=tenant, actor=who.actor, user=who.user, **data.validated_data)
        return _started(tenant, version, 202)


def _started(tenant: Tenant, version: AdapterVersion, status: int) -> Response:
    with tenant_scope(tenant.id):
        adapter = adapter_body(adapter_of(tenant, version.adapter_id))
        body = {"adapter": adapter, "version": version_body(version_of(tenant, version.id))}
    return Response(body, status=status)


class AdapterApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "DELETE": WRITE}

    @extend_schema(operation_id="adapters_get", responses={200: AdapterShape, 404: ErrorBody})
    def get(self, request: Request, adapter_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(adapter_body(adapter_of(tenant, adapter_id)))

    @extend_schema(
        operation_id="adapters_delete",
        parameters=[OpenApiParameter("force", bool, description="also where it is shared or pinned")],
        responses={204: None, 404: ErrorBody, 409: ErrorBody},
    )
    def delete(self, request: Request, adapter_id: str) -> Response:
        """The name answers no more at once; requests under way end as they would have. 409 where it is shared or
        pinned, with what depends on it, unless forced."""
        is_forced = request.query_params.get("force") == "true"
        tenant, actor = tenant_of(request), caller(request).actor
        delete_adapter(tenant=tenant, actor=actor, adapter_id=adapter_id, is_forced=is_forced)
        return Response(status=204)


class AliasApi(AdapterView):
    action_needed = WRITE
    tagged_by = AdapterApi

    class Input(serializers.Serializer[Any]):
        """Either `splits`: versions and the weights they share the traffic by; or `follows_newest`: true."""

        splits = SplitShape(many=True, required=False, allow_empty=False)
        follows_newest = serializers.BooleanField(required=False, default=False)

        class Meta:
            ref_name = "SetAlias"

        def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
            if ("splits" in attrs) == attrs["follows_newest"]:
                raise serializers.ValidationError("send either splits, or follows_newest: true", code="ambiguous_alias")
            numbers = [split["version"] for split in attrs.get("splits", [])]
            if len(set(numbers)) < len(numbers):
                raise serializers.ValidationError({"splits": "a version is named twice: add up its weights"})
            return attrs

    @extend_schema(
        operation_id="adapters_set_alias",
        request=Input,
        responses={200: AdapterShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def put(self, request: Request, adapter_id: str) -> Response:
        """Which version the bare name answers with: one, or two by weight (canary). Roll back by pointing it back."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        splits = data.validated_data.get("splits")
        weights = None if splits is None else {split["version"]: split["weight"] for split in splits}
        tenant = tenant_of(request)
        set_alias(tenant=tenant, actor=caller(request).actor, adapter_id=adapter_id, weights=weights)
        with tenant_scope(tenant.id):
            return Response(adapter_body(adapter_of(tenant, adapter_id)))


class RollbackApi(AdapterView):
    action_needed = WRITE

    @extend_schema(
        operation_id="adapters_roll_back",
        request=None,
        responses={200: AdapterShape, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, adapter_id: str) -> Response:
        """The bare name answers as before its last change; once more goes further back. `alias.rolls_back_to` says
        where to."""
        tenant = tenant_of(request)
        roll_back(tenant=tenant, actor=caller(request).actor, adapter_id=adapter_id)
        with tenant_scope(tenant.id):
            return Response(adapter_body(adapter_of(tenant, adapter_id)))


class PinApi(AdapterView):
    action_needed = "adapters:pin"
    tagged_by = AdapterApi

    class Input(serializers.Serializer[Any]):
        pinned = serializers.BooleanField()

        class Meta:
            ref_name = "SetPin"

    @extend_schema(
        operation_id="adapters_set_pin",
        request=Input,
        responses={200: AdapterShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def put(self, request: Request, adapter_id: str) -> Response:
        """Keep what the adapter's name answers with on the device, within seconds and until it is unpinned: no request
        waits for its load. A tenant may pin a few; slots that are left go by the order of pinning."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, pinned = tenant_of(request), data.validated_data["pinned"]
        set_pin(tenant=tenant, actor=caller(request).actor, adapter_id=adapter_id, pinned=pinned)
        with tenant_scope(tenant.id):
            return Response(adapter_body(adapter_of(tenant, adapter_id)))


class VersionApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "DELETE": WRITE}

    @extend_schema(operation_id="versions_get", responses={200: VersionShape, 404: ErrorBody})
    def get(self, request: Request, version_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(version_body(version_of(tenant, version_id)))

    @extend_schema(operation_id="versions_delete", responses={204: None, 404: ErrorBody, 409: ErrorBody})
    def delete(self, request: Request, version_id: str) -> Response:
        """409 where the adapter's name answers with it."""
        delete_version(tenant=tenant_of(request), actor=caller(request).actor, version_id=version_id)
        return Response(status=204)


class VersionFileApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "PUT": WRITE}
    parser_classes = (RawBody,)

    @extend_schema(
        operation_id="versions_download",
        responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (206, "application/octet-stream"): OpenApiTypes.BINARY,
            404: ErrorBody,
            409: ErrorBody,
            416: ErrorBody,
        },
    )
    def get(self, request: Request, version_id: str, name: str) -> StreamingHttpResponse:
        """The file as it was uploaded, or the part that a `Range` header names. Of a ready version."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return file_response(version_of(tenant, version_id), name, request._request)

    @extend_schema(
        operation_id="versions_store_part",
        parameters=[OpenApiParameter("offset", int, required=True, description="where the part's first byte goes")],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={200: StoredShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody, 413: ErrorBody},
    )
    def put(self, request: Request, version_id: str, name: str) -> Response:
        """One part of a file, in any order, as often as you like: what is answered is durably stored."""
        stream = cast(IO[bytes], request.data)
        ranges = store_upload_part(
            tenant=tenant_of(request),
            version_id=version_id,
            name=name,
            offset=_offset(request.query_params.get("offset")),
            length=part_length(request),
            read=stream.read,
        )
        return Response(stored_body(ranges))


def _offset(raw: str | None) -> int:
    if raw is None or not raw.isascii() or not raw.isdigit() or len(raw) > 15:
        shown = "missing" if raw is None else repr(raw[:30])
        raise InvalidRequest(f"offset is {shown}: say at which byte the part begins, from 0", param="offset")
    return int(raw)


class FinishApi(AdapterView):
    action_needed = WRITE

    @extend_schema(
        operation_id="versions_finish",
        request=None,
        responses={202: VersionShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, version_id: str) -> Response:
        """Everything is sent: compare the digests and have the adapter checked. Its state tells the rest."""
        tenant = tenant_of(request)
        finish_upload(tenant=tenant, actor=caller(request).actor, version_id=version_id)
        with tenant_scope(tenant.id):
            return Response(version_body(version_of(tenant, version_id)), status=202)
