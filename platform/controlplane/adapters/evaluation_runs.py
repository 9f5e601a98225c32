"""What a worker is told of an evaluation, and what it tells. One worker at a time has it, by a lease that ends.

The asking itself is above us (`inference.evaluations`), where the engine and the books are.
"""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from controlplane.adapters.answer_checks import passed
from controlplane.adapters.evaluation_models import Evaluation, EvaluationCase, EvaluationState
from controlplane.adapters.evaluations import RUN_EVALUATION, announce, end
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.queries import ResolvedAdapter
from controlplane.adapters.states import State
from controlplane.celery import enqueue
from tenants.models import ApiKey
from tenants.scope import ALL_TENANTS, tenant_scope

# Longer than both answers to one prompt may take.
LEASE: Final = timedelta(seconds=300)
# Of one that was begun just now, the task is on its way.
UNDER_WAY: Final = timedelta(seconds=15)
MAX_TRIES: Final = 3


class Side(StrEnum):
    CANDIDATE = "candidate"
    BASELINE = "baseline"


@dataclass(frozen=True)
class Run:
    """An evaluation that this worker has. sides: who is asked; None is the base model. cache_salt: of the tenant."""

    evaluation_id: str
    tenant_id: str
    key_id: str
    cache_salt: str
    max_tokens: int
    sides: dict[Side, ResolvedAdapter | None]


@dataclass(frozen=True)
class Case:
    """One prompt. missing: sides that have not answered yet. is_given_up: workers were lost with it, time and again."""

    id: int
    prompt: dict[str, Any]
    missing: tuple[Side, ...]
    is_given_up: bool


@dataclass(frozen=True)
class Answer:
    """What one side said, or why it could not: error is {"code", "message"}. amount: money. latency_ms: from the
    request to the last token, as the worker waited for it. contains, json_schema: whether the text passed that check;
    null: there is none, or it could not be made."""

    request_id: str
    text: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: int = 0
    amount: str = "0"
    contains: bool | None = None
    json_schema: bool | None = None
    error: dict[str, str] | None = None


def take_run(evaluation_id: str) -> Run | None:
    """None where it has ended, or another worker has it. One whose key, tenant or version is gone ends here."""
    with tenant_scope(ALL_TENANTS):
        if not _free(id=evaluation_id).update(leased_until=timezone.now() + LEASE):
            return None
        rows = Evaluation.objects.select_related("tenant", "key", "adapter", "candidate", "baseline")
        found = rows.get(id=evaluation_id)
        if problem := _why_not(found):
            end(evaluation_id, EvaluationState.FAILED, problem)
            return None
    return Run(
        found.id,
        found.tenant_id,
        found.key_id,
        found.tenant.cache_salt,
        found.max_tokens,
        {Side.CANDIDATE: _asked(found, found.candidate), Side.BASELINE: _asked(found, found.baseline)},
    )


def _free(**conditions: Any) -> Any:
    is_free = Q(leased_until=None) | Q(leased_until__lt=timezone.now())
    return Evaluation.objects.filter(is_free, state=EvaluationState.RUNNING, **conditions)


def _why_not(found: Evaluation) -> dict[str, str] | None:
    key: ApiKey = found.key
    if not found.tenant.is_active:
        return {"code": "tenant_suspended", "message": "The tenant is suspended."}
    if key.revoked_at or (key.expires_at and key.expires_at <= timezone.now()):
        return {"code": "key_ended", "message": "The key that began it is revoked or expired: start it with another."}
    for version in (found.candidate, found.baseline):
        if version is not None and version.state != State.READY:
            return {"code": "version_gone", "message": f"Version {version.number} was deleted meanwhile."}
    return None


def _asked(found: Evaluation, version: AdapterVersion | None) -> ResolvedAdapter | None:
    if version is None:
        return None
    uri, digest, rank = version.uri, version.digest, version.rank
    assert uri is not None
    assert digest is not None
    assert rank is not None
    name = f"{found.adapter.name}@{version.number}"
    return ResolvedAdapter(found.adapter_id, version.id, name, uri, digest, rank, found.adapter.base_model)


def next_case(run: Run) -> Case | None:
    """The first prompt that lacks an answer; the lease begins anew with it. None: there is none, or the evaluation has
    ended meanwhile."""
    with tenant_scope(ALL_TENANTS), transaction.atomic():
        rows = Evaluation.objects.filter(id=run.evaluation_id, state=EvaluationState.RUNNING)
        if not rows.update(leased_until=timezone.now() + LEASE):
            return None
        lacking = Q(candidate_answer__isnull=True) | Q(baseline_answer__isnull=True)
        found = EvaluationCase.objects.filter(lacking, evaluation_id=run.evaluation_id).order_by("number").first()
    if found is None:
        return None
    missing = tuple(side for side in Side if getattr(found, f"{side}_answer") is None)
    return Case(found.id, found.prompt, missing, found.tries >= MAX_TRIES)


def begin_try(case: Case) -> None:
    """Counted before the engine is asked: a prompt that ends engines is found by that."""
    EvaluationCase.objects.filter(id=case.id).update(tries=F("tries") + 1)


def record_answer(run: Run, case: Case, side: Side, answer: Answer) -> None:
    """Nothing where the evaluation has ended, or a worker that was faster has brought this answer. The tally counts a
    prompt once both sides have answered."""
    with tenant_scope(ALL_TENANTS), transaction.atomic():
        running = Evaluation.objects.select_for_update().filter(id=run.evaluation_id, state=EvaluationState.RUNNING)
        evaluation = running.first()
        if evaluation is None:
            return
        lacking = EvaluationCase.objects.filter(id=case.id, **{f"{side}_answer__isnull": True})
        if not lacking.update(**{f"{side}_answer": asdict(answer)}, tries=0):
            return
        found = EvaluationCase.objects.get(id=case.id)
        if found.candidate_answer and found.baseline_answer:
            _count(evaluation.tally, found.candidate_answer, found.baseline_answer)
            evaluation.save(update_fields=["tally"])
            announce(evaluation)


def _count(tally: dict[str, Any], candidate: dict[str, Any], baseline: dict[str, Any]) -> None:
    tally["done"] += 1
    tally["differing"] += differ(candidate, baseline) is True
    for side, answer in ((Side.CANDIDATE, candidate), (Side.BASELINE, baseline)):
        verdict = passed(answer["contains"], answer["json_schema"])
        tally[side]["errors"] += answer["error"] is not None
        tally[side]["checked"] += verdict is not None
        tally[side]["passed"] += verdict is True


def differ(candidate: dict[str, Any], baseline: dict[str, Any]) -> bool | None:
    """None where one of them did not answer."""
    if candidate["error"] or baseline["error"]:
        return None
    return bool(candidate["text"] != baseline["text"])


def finish_run(run: Run) -> None:
    """Done, where every prompt has its answers; it may have been cancelled before that."""
    with tenant_scope(ALL_TENANTS):
        end(run.evaluation_id, EvaluationState.DONE)


def fail_run(run: Run, code: str, message: str) -> None:
    with tenant_scope(ALL_TENANTS):
        end(run.evaluation_id, EvaluationState.FAILED, {"code": code, "message": message})


def hand_on(run: Run) -> None:
    """Another worker, or this one when others had their turn, goes on with it."""
    _give_up_lease(run, None)
    enqueue(RUN_EVALUATION, run.evaluation_id)


def wait(run: Run, seconds: float) -> None:
    """Nobody goes on with it before that; `resume_evaluations` finds it then."""
    _give_up_lease(run, timezone.now() + timedelta(seconds=seconds))


def _give_up_lease(run: Run, until: datetime | None) -> None:
    with tenant_scope(ALL_TENANTS):
        Evaluation.objects.filter(id=run.evaluation_id, state=EvaluationState.RUNNING).update(leased_until=until)


def resume_evaluations() -> int:
    """Send again those that no worker has (a worker, the broker or the engine went away); how many."""
    with tenant_scope(ALL_TENANTS), transaction.atomic():
        stalled = _free(created_at__lt=timezone.now() - UNDER_WAY).order_by("created_at")
        ids = list(stalled.values_list("id", flat=True)[:100])
        for evaluation_id in ids:
            enqueue(RUN_EVALUATION, evaluation_id)
    return len(ids)
