"""Evaluations over HTTP."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import views
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.api import READ, WRITE, AdapterView
from controlplane.adapters.evaluation_shapes import (
    EvaluationInput,
    EvaluationRowShape,
    EvaluationShape,
    evaluation_body,
    evaluation_row,
)
from controlplane.adapters.evaluations import (
    cancel_evaluation,
    delete_evaluation,
    evaluation_of,
    evaluations_of,
    start_evaluation,
)
from controlplane.adapters.prompt_sets import live_adapter
from controlplane.errors import Forbidden
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.api_auth import Caller
from tenants.models import Tenant
from tenants.scope import tenant_scope


class MayAsk(Allowed):
    """Whoever starts an evaluation spends the tenant's money on inference, too."""

    message = "Your role or key does not allow this: an evaluation needs a role, or scopes, for adapters and inference."

    def has_permission(self, request: Request, view: views.APIView) -> bool:
        is_allowed = super().has_permission(request, view)
        return is_allowed and (request.method != "POST" or caller(request).can("inference"))


class EvaluationsApi(AdapterView):
    permission_classes = (MayAsk,)
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="evaluations_list",
        parameters=PAGE_PARAMETERS,
        responses={200: page_of("EvaluationPage", EvaluationRowShape), 404: ErrorBody},
    )
    def get(self, request: Request, adapter_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(keyset_page(evaluations_of(tenant, adapter_id), request).body(evaluation_row))

    @extend_schema(
        operation_id="evaluations_start",
        request=EvaluationInput,
        responses={202: EvaluationRowShape, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, adapter_id: str) -> Response:
        """Ask every prompt of the set of both sides, greedily, as the tenant's own traffic: within its limits, and on
        its bill. Its `state` tells the rest."""
        data = EvaluationInput(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who, wanted = tenant_of(request), caller(request), data.validated_data
        _check_reach(tenant, who, adapter_id, with_base=wanted["baseline"] is None)
        found = start_evaluation(
            tenant=tenant,
            actor=who.actor,
            user=who.user,
            key_id=who.key.key_id if who.key else None,
            adapter_id=adapter_id,
            set_id=wanted["prompt_set"],
            candidate=wanted["candidate"],
            baseline=wanted["baseline"],
            max_tokens=wanted["max_tokens"],
        )
        return Response(evaluation_row(found), status=202)


def _check_reach(tenant: Tenant, who: Caller, adapter_id: str, *, with_base: bool) -> None:
    """A key that is held to some models asks no others here either."""
    if who.key is None:
        return
    with tenant_scope(tenant.id):
        adapter = live_adapter(tenant, adapter_id)
    for model in (adapter.name, adapter.base_model) if with_base else (adapter.name,):
        if not who.key.may_use(model):
            text = f"This key may not use the model `{model}`: add it to the key's allowed models, or use another key."
            raise Forbidden(text, code="model_not_allowed")


class EvaluationApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "DELETE": WRITE}

    @extend_schema(operation_id="evaluations_get", responses={200: EvaluationShape, 404: ErrorBody})
    def get(self, request: Request, evaluation_id: str) -> Response:
        """With both answers to each prompt, as far as it is."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(evaluation_body(evaluation_of(tenant, evaluation_id)))

    @extend_schema(operation_id="evaluations_delete", responses={204: None, 404: ErrorBody, 409: ErrorBody})
    def delete(self, request: Request, evaluation_id: str) -> Response:
        """409 while it runs."""
        delete_evaluation(tenant=tenant_of(request), actor=caller(request).actor, evaluation_id=evaluation_id)
        return Response(status=204)


class CancelEvaluationApi(AdapterView):
    action_needed = WRITE

    @extend_schema(operation_id="evaluations_cancel", request=None, responses={200: EvaluationRowShape, 404: ErrorBody})
    def post(self, request: Request, evaluation_id: str) -> Response:
        """No further prompt is asked; the one under way still ends, and is billed. One that has ended stays."""
        tenant = tenant_of(request)
        found = cancel_evaluation(tenant=tenant, actor=caller(request).actor, evaluation_id=evaluation_id)
        return Response(evaluation_row(found))
