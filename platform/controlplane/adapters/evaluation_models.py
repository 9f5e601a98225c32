"""Evaluation before promotion: prompts kept with an adapter, and what two sides answered to them."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from controlplane.adapters.models import Adapter, AdapterVersion
from tenants.ids import new_id
from tenants.models import ApiKey, Tenant, User
from tenants.scope import TenantManager


def new_set_id() -> str:
    return new_id("pst")


def new_evaluation_id() -> str:
    return new_id("evl")


def no_tally() -> dict[str, Any]:
    """Of an evaluation without an answer. checked: answers that a check looked at; passed: every check of theirs did;
    errors: prompts that this side could not answer."""
    none = {"checked": 0, "passed": 0, "errors": 0}
    return {"done": 0, "differing": 0, "candidate": dict(none), "baseline": dict(none)}


class EvaluationState(models.TextChoices):
    """running: waits for a worker, or has one. The others are ends; failed: it could not go on, `failure` says why."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class PromptSet(models.Model):
    """prompts: as `prompt_sets.read_prompts` makes them. Never changed: another set is another name."""

    id = models.CharField(primary_key=True, max_length=32, default=new_set_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="prompt_sets")
    name = models.CharField(max_length=63)
    prompts = models.JSONField()
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["PromptSet"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["adapter", "name"], name="one_prompt_set_per_name"),
        ]


class Evaluation(models.Model):
    """One set, asked of a version and of a baseline: another version, or the base model (null).

    prompt_set_name: stays when the set goes. key: whose limits hold, and whom the usage is booked under. total:
    prompts. tally: as `no_tally`. leased_until: until then a worker has it. failure: {"code", "message"}.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_evaluation_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="evaluations")
    prompt_set = models.ForeignKey(PromptSet, null=True, on_delete=models.SET_NULL, related_name="+")
    prompt_set_name = models.CharField(max_length=63)
    candidate = models.ForeignKey(AdapterVersion, on_delete=models.PROTECT, related_name="+")
    baseline = models.ForeignKey(AdapterVersion, null=True, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    max_tokens = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=EvaluationState, default=EvaluationState.RUNNING)
    total = models.PositiveIntegerField()
    tally = models.JSONField(default=no_tally)
    failure = models.JSONField(null=True)
    leased_until = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True)

    objects = TenantManager["Evaluation"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(state__in=list(EvaluationState)), name="evaluation_state_is_known"),
            models.CheckConstraint(
                condition=Q(state=EvaluationState.RUNNING, ended_at=None)
                | (~Q(state=EvaluationState.RUNNING) & Q(ended_at__isnull=False)),
                name="an_evaluation_ends_once",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["leased_until"], condition=Q(state="running"), name="running_evaluations"),
        ]


class EvaluationCase(models.Model):
    """One prompt of an evaluation, and both answers once they are there (`answers.Answer`). tries: how often a worker
    began with it."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="cases")
    number = models.PositiveIntegerField()
    prompt = models.JSONField()
    candidate_answer = models.JSONField(null=True)
    baseline_answer = models.JSONField(null=True)
    tries = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["evaluation", "number"], name="one_case_per_number"),
        ]
