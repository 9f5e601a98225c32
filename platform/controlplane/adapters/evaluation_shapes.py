"""How evaluations look on the wire."""

from typing import Any

from rest_framework import serializers

from controlplane.adapters.answer_checks import passed
from controlplane.adapters.evaluation_models import Evaluation, EvaluationCase, EvaluationState
from controlplane.adapters.evaluation_runs import differ
from controlplane.adapters.evaluations import MAX_TOKENS
from controlplane.adapters.prompt_shapes import KnownFields, PromptShape


class EvaluationInput(KnownFields):
    """candidate, baseline: version numbers; baseline null: the base model. max_tokens: of each answer."""

    prompt_set = serializers.CharField(max_length=64)
    candidate = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    baseline = serializers.IntegerField(min_value=1, max_value=2**31 - 1, allow_null=True)
    max_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS, default=256)

    class Meta:
        ref_name = "StartEvaluation"


class FailureShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()

    class Meta:
        ref_name = "EvaluationFailure"


class AnswerShape(serializers.Serializer[Any]):
    """latency_ms: until its last token, as the worker waited for it; the first answer of a version has its load in it.
    amount: money. passed: all checks that its prompt has; null: it has none. error: why there is no answer."""

    request_id = serializers.CharField()
    text = serializers.CharField()
    finish_reason = serializers.CharField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    latency_ms = serializers.IntegerField()
    amount = serializers.CharField()
    contains = serializers.BooleanField(allow_null=True)
    json_schema = serializers.BooleanField(allow_null=True)
    passed = serializers.BooleanField(allow_null=True)
    error = FailureShape(allow_null=True)

    class Meta:
        ref_name = "EvaluationAnswer"


class CaseShape(serializers.Serializer[Any]):
    """The answers are null until both are there. differs: their texts do; null too where one side had an error."""

    number = serializers.IntegerField()
    prompt = PromptShape()
    candidate = AnswerShape(allow_null=True)
    baseline = AnswerShape(allow_null=True)
    differs = serializers.BooleanField(allow_null=True)

    class Meta:
        ref_name = "EvaluationCase"


class SideTallyShape(serializers.Serializer[Any]):
    """checked: answers whose prompt has a check; passed: of those. errors: prompts that it could not answer."""

    checked = serializers.IntegerField()
    passed = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # a field, whatever its name

    class Meta:
        ref_name = "EvaluationTally"


class EvaluationRowShape(serializers.Serializer[Any]):
    """total, done, differing: prompts. prompt_set: null once the set is deleted. failure: why it `failed`."""

    id = serializers.CharField()
    adapter_id = serializers.CharField()
    prompt_set = serializers.CharField(allow_null=True)
    prompt_set_name = serializers.CharField()
    candidate = serializers.IntegerField()
    baseline = serializers.IntegerField(allow_null=True)
    max_tokens = serializers.IntegerField()
    state = serializers.ChoiceField(choices=list(EvaluationState))
    total = serializers.IntegerField()
    done = serializers.IntegerField()
    differing = serializers.IntegerField()
    candidate_tally = SideTallyShape()
    baseline_tally = SideTallyShape()
    failure = FailureShape(allow_null=True)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "EvaluationRow"


class EvaluationShape(EvaluationRowShape):
    cases = CaseShape(many=True)

    class Meta:
        ref_name = "Evaluation"


def evaluation_row(found: Evaluation) -> dict[str, Any]:
    plain = ("id", "adapter_id", "prompt_set_name", "max_tokens", "state", "total", "failure", "created_at", "ended_at")
    return {
        **{name: getattr(found, name) for name in plain},
        "prompt_set": found.prompt_set_id,
        "candidate": found.candidate.number,
        "baseline": found.baseline.number if found.baseline else None,
        "done": found.tally["done"],
        "differing": found.tally["differing"],
        "candidate_tally": found.tally["candidate"],
        "baseline_tally": found.tally["baseline"],
    }


def evaluation_body(found: Evaluation) -> dict[str, Any]:
    return {**evaluation_row(found), "cases": [_case(case) for case in found.cases.order_by("number")]}


def _case(case: EvaluationCase) -> dict[str, Any]:
    candidate, baseline = case.candidate_answer, case.baseline_answer
    return {
        "number": case.number,
        "prompt": case.prompt,
        "candidate": _answer(candidate),
        "baseline": _answer(baseline),
        "differs": differ(candidate, baseline) if candidate and baseline else None,
    }


def _answer(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    return answer and {**answer, "passed": passed(answer["contains"], answer["json_schema"])}
