"""Evaluations as their tenant sees them: begun, listed, cancelled, deleted. `evaluation_runs` has the worker's side."""

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.adapters.evaluation_models import Evaluation, EvaluationCase, EvaluationState, PromptSet
from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.prompt_sets import live_adapter
from controlplane.adapters.states import State
from controlplane.celery import enqueue
from controlplane.errors import Conflict, InvalidRequest, NotFound
from controlplane.events import publish
from tenants.audit import record_audit
from tenants.key_services import issue_key
from tenants.models import ApiKey, Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope

RUN_EVALUATION: Final = "inference.run_evaluation"  # above us, so known by its name
MAX_RUNNING: Final = 3
MAX_KEPT: Final = 200
MAX_TOKENS: Final = 1024
KEY_NAME: Final = "Evaluations"


def evaluations_of(tenant: Tenant, adapter_id: str) -> QuerySet[Evaluation]:
    """Inside tenant_scope. NotFound for a foreign adapter."""
    rows = Evaluation.objects.filter(tenant=tenant, adapter=live_adapter(tenant, adapter_id))
    return rows.select_related("candidate", "baseline")


def evaluation_of(tenant: Tenant, evaluation_id: str) -> Evaluation:
    """Inside tenant_scope."""
    rows = Evaluation.objects.filter(tenant=tenant, id=evaluation_id)
    found = rows.select_related("candidate", "baseline").first()
    if found is None:
        raise NotFound(f"There is no evaluation {evaluation_id}.")
    return found


@transaction.atomic
def start_evaluation(
    *,
    tenant: Tenant,
    actor: str,
    user: User | None,
    key_id: str | None,
    adapter_id: str,
    set_id: str,
    candidate: int,
    baseline: int | None,
    max_tokens: int,
) -> Evaluation:
    """candidate, baseline: version numbers; None: the base model. key_id: who asks, where a key does; a person's
    evaluations go by a key of their own, `Evaluations`."""
    with tenant_scope(tenant.id):
        adapter = live_adapter(tenant, adapter_id, lock=True)
        prompts = _prompts_of(adapter, set_id)
        _check_room(tenant, adapter)
        if candidate == baseline:
            text = f"baseline is version {baseline}, as candidate is: name another one, or null for the base model"
            raise InvalidRequest(text, param="baseline")
        found = Evaluation.objects.create(
            tenant=tenant,
            adapter=adapter,
            prompt_set=prompts,
            prompt_set_name=prompts.name,
            candidate=_version(adapter, candidate, "candidate"),
            baseline=None if baseline is None else _version(adapter, baseline, "baseline"),
            key_id=key_id or _key_of(tenant, actor).id,
            max_tokens=max_tokens,
            total=len(prompts.prompts),
            created_by=user,
        )
        EvaluationCase.objects.bulk_create(
            EvaluationCase(evaluation=found, number=number, prompt=prompt)
            for number, prompt in enumerate(prompts.prompts, 1)
        )
        found.refresh_from_db()  # created_at is the database's
    details = {"adapter": adapter.id, "prompt_set": set_id, "candidate": candidate, "baseline": baseline}
    record_audit(tenant=tenant, actor=actor, action="evaluation.start", target=found.id, details=details)
    enqueue(RUN_EVALUATION, found.id)
    return found


def _prompts_of(adapter: Adapter, set_id: str) -> PromptSet:
    found = PromptSet.objects.filter(adapter=adapter, id=set_id).first()
    if found is None:
        raise InvalidRequest(
            f"prompt_set {set_id[:40]!r} is none of this adapter's: GET its prompt-sets", param="prompt_set"
        )
    return found


def _check_room(tenant: Tenant, adapter: Adapter) -> None:
    Tenant.objects.select_for_update().get(id=tenant.id)  # two at once must not both find the last place
    running = Evaluation.objects.filter(tenant=tenant, state=EvaluationState.RUNNING).count()
    if running >= MAX_RUNNING:
        text = f"{running} evaluations of the tenant are running: wait until one has ended, or cancel one"
        raise Conflict(text, code="too_many_evaluations")
    if Evaluation.objects.filter(adapter=adapter).count() >= MAX_KEPT:
        text = f"{MAX_KEPT} evaluations of the adapter are kept: delete some"
        raise Conflict(text, code="too_many_evaluations")


def _version(adapter: Adapter, number: int, param: str) -> AdapterVersion:
    found = adapter.versions.filter(number=number).exclude(state=State.DELETED).first()
    if found is None:
        raise InvalidRequest(f"{param}: {adapter.name} has no version {number}", param=param)
    if found.state != State.READY:
        text = f"{param}: version {number} is {found.state}: only a ready version can be asked"
        raise Conflict(text, param=param, code="version_not_ready")
    return found


def _key_of(tenant: Tenant, actor: str) -> ApiKey:
    """One that opens nothing: it is in the list of keys, so that evaluations have limits and a line in the usage of
    their own."""
    alive = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    known = ApiKey.objects.filter(alive, tenant=tenant, name=KEY_NAME, scopes=[], revoked_at=None).first()
    return known or issue_key(tenant=tenant, name=KEY_NAME, scopes=(), actor=None, issuer=actor)[0]


@transaction.atomic
def cancel_evaluation(*, tenant: Tenant, actor: str, evaluation_id: str) -> Evaluation:
    """No further prompt is asked. What is being asked just now is answered, and billed. One that has ended stays."""
    with tenant_scope(tenant.id):
        evaluation_of(tenant, evaluation_id)
        if end(evaluation_id, EvaluationState.CANCELLED):
            record_audit(tenant=tenant, actor=actor, action="evaluation.cancel", target=evaluation_id)
        return evaluation_of(tenant, evaluation_id)


@transaction.atomic
def delete_evaluation(*, tenant: Tenant, actor: str, evaluation_id: str) -> None:
    """With its answers; what they cost stays in the books. Conflict while it runs."""
    with tenant_scope(tenant.id):
        found = evaluation_of(tenant, evaluation_id)
        if not Evaluation.objects.filter(id=found.id).exclude(state=EvaluationState.RUNNING).delete()[0]:
            raise Conflict("the evaluation is running: cancel it first", code="evaluation_running")
    details = {"adapter": found.adapter_id}
    record_audit(tenant=tenant, actor=actor, action="evaluation.delete", target=evaluation_id, details=details)


def end(evaluation_id: str, state: EvaluationState, failure: dict[str, str] | None = None) -> bool:
    """The conditional update, in the scope around. False where it had ended already."""
    rows = Evaluation.objects.filter(id=evaluation_id, state=EvaluationState.RUNNING)
    ended = rows.update(state=state, failure=failure, ended_at=timezone.now(), leased_until=None)
    if ended:
        announce(Evaluation.objects.get(id=evaluation_id))
    return bool(ended)


def announce(evaluation: Evaluation) -> None:
    data = {
        "id": evaluation.id,
        "adapter_id": evaluation.adapter_id,
        "state": evaluation.state,
        "done": evaluation.tally["done"],
        "total": evaluation.total,
    }
    publish(tenant_id=evaluation.tenant_id, event="evaluation.changed", data=data)


def expire_evaluations() -> int:
    """Answers are kept for some months."""
    horizon = timezone.now() - timedelta(days=settings.EVALUATIONS_KEPT_DAYS)
    with tenant_scope(ALL_TENANTS):
        ids = list(Evaluation.objects.filter(ended_at__lt=horizon).values_list("id", flat=True)[:100])
        Evaluation.objects.filter(id__in=ids).delete()
    return len(ids)
