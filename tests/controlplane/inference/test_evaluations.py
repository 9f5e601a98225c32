"""A worker runs evaluations: what is asked, what it costs whom, and what becomes of it when anything gives way."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from controlplane.adapters.evaluation_models import Evaluation, EvaluationCase
from controlplane.adapters.evaluation_runs import MAX_TRIES
from controlplane.adapters.evaluations import RUN_EVALUATION, cancel_evaluation, delete_evaluation, start_evaluation
from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.prompt_sets import create_prompt_set
from controlplane.adapters.tasks import resume_evaluations
from controlplane.billing.models import Discrepancy, LedgerEntry
from controlplane.celery import app
from controlplane.inference import evaluations
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.tasks import run_evaluation
from controlplane.quotas.limits import set_limits
from controlplane.quotas.models import Hold
from engine import protocol as wire
from tenants.key_services import revoke_key
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.fake_engine import FakeEngine, Script
from tests.controlplane.inference.conftest import BASE, Caller, holds_of, new_adapter, new_caller, usage_of

pytestmark = pytest.mark.django_db(transaction=True)
PROMPTS: list[dict[str, Any]] = [
    {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "contains": "Ahoy",
    },
    {"prompt": "A ship as JSON:", "json_schema": {"required": ["name"]}},
    {"prompt": "Where to?"},
]
AHOY, HELLO = Script(pieces=("Ahoy", " there")), Script(pieces=("Hello",))
SHIP = Script(pieces=('{"name":', '"Pearl"}'), cached=4)


@pytest.fixture
def engine(tmp_path: Path, settings: Settings) -> Iterator[FakeEngine]:
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    settings.ENGINE_URL, settings.MODEL_DIR = found.url, tmp_path / BASE
    yield found
    found.kill()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: found.append((name, args)))
    return found


@dataclass
class Scene:
    """A tenant's adapter with two versions, and an evaluation of the second that has begun."""

    caller: Caller
    adapter: Adapter
    id: str

    def start(self, *, prompts: list[dict[str, Any]] = PROMPTS, baseline: int | None = 1, name: str = "again") -> str:
        tenant, actor = self.caller.tenant, self.caller.key_id
        made = create_prompt_set(
            tenant=tenant, actor=actor, user=None, adapter_id=self.adapter.id, name=name, prompts=prompts
        )
        found = start_evaluation(
            tenant=tenant, actor=actor, user=None, key_id=self.caller.key_id, adapter_id=self.adapter.id,
            set_id=made.id, candidate=2, baseline=baseline, max_tokens=20,
        )  # fmt: skip
        self.id = found.id
        return found.id

    @property
    def now(self) -> Evaluation:
        with tenant_scope(ALL_TENANTS):
            return Evaluation.objects.get(id=self.id)

    @property
    def cases(self) -> list[EvaluationCase]:
        with tenant_scope(ALL_TENANTS):
            return list(EvaluationCase.objects.filter(evaluation_id=self.id).order_by("number"))

    def free_lease(self) -> None:
        with tenant_scope(ALL_TENANTS):
            Evaluation.objects.filter(id=self.id).update(leased_until=None)


@pytest.fixture
def scene(engine: FakeEngine, sent: list[Any]) -> Scene:
    caller = new_caller()
    found = Scene(caller, new_adapter(caller, versions=2), "")
    found.start(name="first")
    sent.clear()
    return found


def nothing_is_held(scene: Scene) -> bool:
    return {hold.state for hold in holds_of(scene.caller)} <= {"settled", "released"}


def test_both_sides_answer_every_prompt_and_it_is_all_counted(engine: FakeEngine, scene: Scene) -> None:
    engine.scripts.extend([AHOY, HELLO, SHIP, HELLO, AHOY, AHOY])
    run_evaluation(scene.id)
    found = scene.now
    assert (found.state, found.failure, found.leased_until) == ("done", None, None)
    assert found.tally == {
        "done": 3,
        "differing": 2,
        "candidate": {"checked": 2, "passed": 2, "errors": 0},
        "baseline": {"checked": 2, "passed": 0, "errors": 0},
    }
    first, second, third = scene.cases
    assert (first.candidate_answer["text"], first.baseline_answer["text"]) == ("Ahoy there", "Hello")
    assert (first.candidate_answer["contains"], first.baseline_answer["contains"]) == (True, False)
    assert (second.candidate_answer["json_schema"], second.baseline_answer["json_schema"]) == (True, False)
    assert (third.candidate_answer["contains"], third.candidate_answer["json_schema"]) == (None, None)
    asked = engine.of(wire.Generate)
    assert [each.adapter.digest[-1] for each in asked] == ["2", "1"] * 3
    assert bytes(asked[0].token_ids) == b"<system>Be brief.<user>Hello"
    assert bytes(asked[2].token_ids) == b"A ship as JSON:"
    assert {(each.sampling.temperature, each.sampling.max_tokens) for each in asked} == {(0.0, 20)}
    tenant = scene.caller.tenant
    assert {(each.tenant, each.namespace) for each in asked} == {(tenant.id, tenant.cache_salt)}


def test_it_is_the_tenants_own_traffic_on_its_bill(engine: FakeEngine, scene: Scene) -> None:
    engine.scripts.extend([AHOY, HELLO, SHIP, HELLO, AHOY, AHOY])
    run_evaluation(scene.id)
    events = usage_of(scene.caller)
    answers = [answer for case in scene.cases for answer in (case.candidate_answer, case.baseline_answer)]
    assert [event.request_id for event in events] == [answer["request_id"] for answer in answers]
    for event, answer in zip(events, answers, strict=True):
        assert (event.key_id, event.adapter_id) == (scene.caller.key_id, scene.adapter.id)
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "finish_reason"):
            assert getattr(event, name) == answer[name]
        assert event.amount == Decimal(answer["amount"]) > 0
    assert {event.model for event in events} == {"pirate@1", "pirate@2"}
    assert [hold.state for hold in holds_of(scene.caller)] == ["settled"] * 6
    with EngineCalls(engine.url) as calls:
        ingest_journal(calls)
    with tenant_scope(ALL_TENANTS):
        assert (Discrepancy.objects.count(), len(usage_of(scene.caller))) == (0, 6)
        assert sum(LedgerEntry.objects.values_list("amount", flat=True)) == 0


def test_the_base_model_may_be_the_other_side(engine: FakeEngine, scene: Scene) -> None:
    scene.start(baseline=None)
    run_evaluation(scene.id)
    asked = engine.of(wire.Generate)
    assert [each.adapter is None for each in asked] == [False, True] * 3
    assert [event.model for event in usage_of(scene.caller)] == ["pirate@2", BASE] * 3
    assert (scene.now.state, scene.now.tally["differing"]) == ("done", 0)


def test_a_second_worker_leaves_it_alone(engine: FakeEngine, scene: Scene) -> None:
    with tenant_scope(ALL_TENANTS):
        Evaluation.objects.update(leased_until=timezone.now() + timedelta(minutes=1))
    run_evaluation(scene.id)
    assert (engine.of(wire.Generate), scene.now.state) == ([], "running")
    scene.free_lease()
    run_evaluation(scene.id)
    run_evaluation(scene.id)
    run_evaluation("evl_none")
    assert (len(engine.of(wire.Generate)), scene.now.state) == (6, "done")


def test_a_worker_that_lost_its_lease_counts_nothing_twice(
    engine: FakeEngine, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still for longer than its lease, and another one went on meanwhile."""

    def meanwhile() -> None:
        scene.free_lease()
        with tenant_scope(ALL_TENANTS):
            run_evaluation(scene.id)

    during(monkeypatch, meanwhile)
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.tally["done"]) == ("done", 3)


def test_a_long_one_lets_others_have_their_turn(
    engine: FakeEngine, scene: Scene, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluations, "SLICE_SECONDS", 0.0)
    for done in (1, 2, 3):
        run_evaluation(scene.id)
        assert (scene.now.tally["done"], scene.now.leased_until) == (done, None)
    assert sent == [(RUN_EVALUATION, (scene.id,))] * 3
    run_evaluation(scene.id)
    assert (scene.now.state, len(engine.of(wire.Generate))) == ("done", 6)


def during(monkeypatch: pytest.MonkeyPatch, deed: Any) -> None:
    """After the first answer of a run."""
    record, left = evaluations.record_answer, [deed]

    def and_then(*args: Any) -> None:
        record(*args)
        if left:
            left.pop()()

    monkeypatch.setattr(evaluations, "record_answer", and_then)


@pytest.mark.parametrize("how", ["cancelled", "deleted"])
def test_one_that_is_cancelled_asks_no_further_prompt(
    engine: FakeEngine, scene: Scene, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    names = {"tenant": scene.caller.tenant, "actor": "x", "evaluation_id": scene.id}

    def deed() -> None:
        cancel_evaluation(**names)
        if how == "deleted":
            delete_evaluation(**names)

    during(monkeypatch, deed)
    run_evaluation(scene.id)
    assert len(engine.of(wire.Generate)) == 2  # the prompt under way
    assert (len(usage_of(scene.caller)), nothing_is_held(scene)) == (2, True)
    if how == "cancelled":
        assert (scene.now.state, scene.now.tally["done"]) == ("cancelled", 0)


def test_limits_hold_it_up_and_it_goes_on_later(engine: FakeEngine, scene: Scene) -> None:
    set_limits(tenant=scene.caller.tenant, key_id=scene.caller.key_id, actor="x", changes={"requests_per_minute": 3})
    run_evaluation(scene.id)
    found = scene.now
    assert (found.state, len(engine.of(wire.Generate))) == ("running", 3)
    assert found.leased_until is not None
    assert found.leased_until > timezone.now()
    set_limits(tenant=scene.caller.tenant, key_id=scene.caller.key_id, actor="x", changes={"requests_per_minute": None})
    run_evaluation(scene.id)
    assert len(engine.of(wire.Generate)) == 3  # it waits, whoever sends it
    scene.free_lease()
    run_evaluation(scene.id)
    assert (scene.now.state, len(engine.of(wire.Generate))) == ("done", 6)  # none was asked twice


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"budget": Decimal(0), "period": "total"}, "insufficient_quota"),
        ({"tokens_per_day": 5}, "tokens_per_day_exceeded"),
    ],
)
def test_what_the_tenant_cannot_pay_is_not_asked(
    engine: FakeEngine, scene: Scene, changes: dict[str, Any], code: str
) -> None:
    set_limits(tenant=scene.caller.tenant, key_id=scene.caller.key_id, actor="x", changes=changes)
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.failure["code"]) == ("failed", code)
    assert scene.now.failure["message"]
    assert (engine.of(wire.Generate), holds_of(scene.caller)) == ([], [])


def test_what_has_no_price_is_not_asked(engine: FakeEngine) -> None:
    caller = new_caller(priced=False)
    scene = Scene(caller, new_adapter(caller, versions=2), "")
    scene.start()
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.failure["code"]) == ("failed", "price_missing")


def test_a_prompt_that_the_engine_refuses_is_an_error_of_that_prompt(engine: FakeEngine, scene: Scene) -> None:
    late = Script(pieces=("Ah",), error=wire.EngineError("", "deadline_exceeded", "late"))
    refused = Script(pieces=(), error=wire.EngineError("", "context_length_exceeded", "too long"))
    engine.scripts.extend([refused, AHOY, late, AHOY, AHOY, AHOY])
    run_evaluation(scene.id)
    first, second, _ = scene.cases
    assert first.candidate_answer["error"]["code"] == "context_length_exceeded"
    assert second.candidate_answer["error"]["code"] == "deadline_exceeded"
    assert scene.now.tally["candidate"] == {"checked": 0, "passed": 0, "errors": 2}
    assert (scene.now.state, scene.now.tally["done"], scene.now.tally["differing"]) == ("done", 3, 0)
    assert [event.finish_reason for event in usage_of(scene.caller)].count("error:deadline_exceeded") == 1
    assert (len(usage_of(scene.caller)), nothing_is_held(scene)) == (5, True)


def test_a_prompt_that_cannot_be_prepared_is_an_error_of_that_prompt(engine: FakeEngine, scene: Scene) -> None:
    engine.prepare_error = wire.EngineError("", "invalid_prompt", "no such template", "messages")
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.tally["baseline"]["errors"], holds_of(scene.caller)) == ("done", 3, [])


def test_an_engine_without_room_is_asked_again_later(engine: FakeEngine, scene: Scene) -> None:
    full = Script(pieces=(), error=wire.EngineError("", "engine_overloaded", "full", permanent=False, retry_after_s=7))
    engine.scripts.extend([AHOY, full])
    run_evaluation(scene.id)
    assert (scene.now.state, nothing_is_held(scene)) == ("running", True)
    scene.free_lease()
    run_evaluation(scene.id)
    assert (scene.now.state, len(usage_of(scene.caller))) == ("done", 6)


def test_an_engine_that_is_away_loses_nothing(
    engine: FakeEngine, scene: Scene, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.inference.tasks.PATIENCE_SECONDS", 0.05)
    engine.kill()
    for _ in range(MAX_TRIES + 1):
        scene.free_lease()
        run_evaluation(scene.id)
        assert (scene.now.state, holds_of(scene.caller)) == ("running", [])
    with tenant_scope(ALL_TENANTS):
        Evaluation.objects.update(leased_until=timezone.now(), created_at=timezone.now() - timedelta(minutes=1))
    resume_evaluations()
    assert sent == [(RUN_EVALUATION, (scene.id,))]
    monkeypatch.setattr("controlplane.inference.tasks.PATIENCE_SECONDS", 5)
    engine.start()
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.tally["done"]) == ("done", 3)


def test_a_prompt_that_ends_engines_is_given_up_and_the_others_are_asked(engine: FakeEngine, scene: Scene) -> None:
    for _ in range(MAX_TRIES):
        engine.scripts.append(replace(AHOY, finish="engine_restart"))
        run_evaluation(scene.id)
        assert scene.now.state == "running"
        scene.free_lease()
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.tally["done"]) == ("done", 3)
    first = scene.cases[0]
    assert first.candidate_answer["error"]["code"] == "engine_unavailable"
    assert len(usage_of(scene.caller)) == MAX_TRIES + 4  # what was generated is in the books, lost or not


def test_what_a_lost_worker_had_asked_is_settled_from_the_journal(
    engine: FakeEngine, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(evaluations, "_settle", killed)
        with pytest.raises(SystemExit):
            run_evaluation(scene.id)
    assert [hold.state for hold in holds_of(scene.caller)] == ["open"]
    with EngineCalls(engine.url) as calls:
        ingest_journal(calls)
    assert ([hold.state for hold in holds_of(scene.caller)], len(usage_of(scene.caller))) == (["settled"], 1)
    run_evaluation(scene.id)
    assert scene.now.state == "running"  # its lease goes on
    scene.free_lease()
    run_evaluation(scene.id)
    assert (scene.now.state, len(usage_of(scene.caller))) == ("done", 7)
    with tenant_scope(ALL_TENANTS):
        assert not Hold.objects.filter(state="open").exists()


def test_a_key_a_version_or_a_tenant_that_is_gone_ends_it(engine: FakeEngine, scene: Scene) -> None:
    tenant = scene.caller.tenant
    with tenant_scope(ALL_TENANTS):
        AdapterVersion.objects.filter(adapter=scene.adapter, number=1).update(state="deleted")
    run_evaluation(scene.id)
    assert (scene.now.state, scene.now.failure["code"]) == ("failed", "version_gone")
    scene.start(baseline=None)
    tenant.is_active = False
    tenant.save()
    run_evaluation(scene.id)
    assert scene.now.failure["code"] == "tenant_suspended"
    tenant.is_active = True
    tenant.save()
    scene.start(baseline=None, name="third")
    revoke_key(tenant=tenant, key_id=scene.caller.key_id, actor="x")
    run_evaluation(scene.id)
    assert scene.now.failure["code"] == "key_ended"
    assert engine.of(wire.Generate) == []


def test_texts_that_the_database_cannot_hold_are_kept_as_far_as_it_can(engine: FakeEngine, scene: Scene) -> None:
    engine.scripts.append(Script(pieces=("a\0b",)))
    run_evaluation(scene.id)
    assert scene.cases[0].candidate_answer["text"] == "a\N{REPLACEMENT CHARACTER}b"
