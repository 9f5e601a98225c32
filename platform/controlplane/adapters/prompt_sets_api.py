"""Prompt sets over HTTP."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.api import READ, WRITE, AdapterView
from controlplane.adapters.prompt_sets import create_prompt_set, delete_prompt_set, prompt_set_of, prompt_sets_of
from controlplane.adapters.prompt_shapes import (
    PromptSetInput,
    PromptSetRowShape,
    PromptSetShape,
    prompt_set_body,
    prompt_set_row,
)
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.scope import tenant_scope


class PromptSetsApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="prompt_sets_list",
        parameters=PAGE_PARAMETERS,
        responses={200: page_of("PromptSetPage", PromptSetRowShape), 404: ErrorBody},
    )
    def get(self, request: Request, adapter_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(keyset_page(prompt_sets_of(tenant, adapter_id), request).body(prompt_set_row))

    @extend_schema(
        operation_id="prompt_sets_create",
        request=PromptSetInput,
        responses={201: PromptSetShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, adapter_id: str) -> Response:
        """Prompts to ask of the adapter's versions, with what right answers have in them. A set never changes."""
        data = PromptSetInput(data=request.data)
        data.is_valid(raise_exception=True)
        who = caller(request)
        found = create_prompt_set(
            tenant=tenant_of(request), actor=who.actor, user=who.user, adapter_id=adapter_id, **data.validated_data
        )
        return Response(prompt_set_body(found), status=201)


class PromptSetApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "DELETE": WRITE}

    @extend_schema(operation_id="prompt_sets_get", responses={200: PromptSetShape, 404: ErrorBody})
    def get(self, request: Request, prompt_set_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(prompt_set_body(prompt_set_of(tenant, prompt_set_id)))

    @extend_schema(operation_id="prompt_sets_delete", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, prompt_set_id: str) -> Response:
        """Evaluations of it keep what was asked and answered."""
        delete_prompt_set(tenant=tenant_of(request), actor=caller(request).actor, set_id=prompt_set_id)
        return Response(status=204)
