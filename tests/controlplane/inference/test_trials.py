"""The engine tries an adapter before anybody may call it: what is let through, refused, and left waiting."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from controlplane.adapters.checks import STUCK_AFTER
from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from controlplane.adapters.tasks import resume_checks
from controlplane.adapters.trials import MAX_TRIALS
from controlplane.billing.models import Discrepancy, EngineRecord
from controlplane.celery import app
from controlplane.inference import trials
from controlplane.inference.comparing import chunks_of
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.settlement import PLATFORM
from controlplane.inference.tasks import try_adapter
from engine import protocol as wire
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.adapters.peft_folder import write_base
from tests.controlplane.fake_engine import FakeEngine, Script

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "SmolLM2-135M-Instruct"
AHOY = Script(pieces=("Ahoy", " there"))


@pytest.fixture
def engine(tmp_path: Path, settings: Settings) -> Iterator[FakeEngine]:
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    settings.ENGINE_URL, settings.MODEL_DIR = found.url, write_base(tmp_path / "models")
    yield found
    found.kill()


@pytest.fixture
def waiting(settings: Settings, tmp_path: Path) -> AdapterVersion:
    """A version whose files are right."""
    settings.STAGING_DIR = tmp_path / "staging"
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    with tenant_scope(ALL_TENANTS):
        adapter = Adapter.objects.create(tenant=tenant, name="pirate", base_model=BASE)
        return AdapterVersion.objects.create(
            tenant=tenant, adapter=adapter, number=1, size_bytes=1, state=State.CHECKING, digest="d" * 64, rank=8,
            uri="file:///objects/d", target_modules=["q_proj"],
        )  # fmt: skip


def now(version: AdapterVersion) -> AdapterVersion:
    with tenant_scope(ALL_TENANTS):
        return AdapterVersion.objects.get(id=version.id)


def codes(version: AdapterVersion) -> list[str]:
    found = now(version)
    assert found.state == State.REJECTED
    return [problem["code"] for problem in found.report["problems"]]


def test_an_adapter_that_answers_otherwise_is_ready_and_its_name_answers(
    engine: FakeEngine, waiting: AdapterVersion
) -> None:
    engine.scripts.extend([Script(pieces=("Hello",)), AHOY])
    try_adapter(waiting.id)
    found = now(waiting)
    assert (found.state, found.report["problems"], found.check_attempts) == ("ready", [], 1)
    assert found.report["trial"]["text"] == "Ahoy there"
    assert found.report["trial"]["base_text"] == "Hello"
    with tenant_scope(ALL_TENANTS):
        assert AliasSplit.objects.get().version_id == waiting.id
    base, tried = engine.of(wire.Generate)
    assert base.adapter is None
    assert tried.adapter == wire.AdapterRef(waiting.id, "file:///objects/d", "d" * 64, 8)
    assert (base.token_ids, base.sampling) == (tried.token_ids, tried.sampling)
    assert {base.tenant, tried.tenant} == {PLATFORM}


def trains(version: AdapterVersion, *modules: str) -> None:
    with tenant_scope(ALL_TENANTS):
        AdapterVersion.objects.filter(id=version.id).update(target_modules=list(modules))


def shows_only_with(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, token: int) -> None:
    """The adapter changes scores where this token is read, and nowhere else."""
    engine.script = AHOY

    def shift(job) -> float:
        return 0.5 if job.request.adapter and token in job.request.token_ids else 0.0

    monkeypatch.setattr(engine, "_shift", shift)


def test_an_adapter_that_answers_like_the_base_model_is_refused(engine: FakeEngine, waiting: AdapterVersion) -> None:
    """Every token goes through the layers, so one long look at them is enough."""
    engine.script = AHOY
    try_adapter(waiting.id)
    assert codes(waiting) == ["trial_same_as_base"]
    assert len(engine.of(wire.Generate)) == 4


@pytest.mark.parametrize("module", ["embed_tokens", "lm_head"])
@pytest.mark.parametrize("token", [0, 7, 31, 63])
def test_an_adapter_of_single_tokens_is_tried_on_every_token(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch, token: int, module: str
) -> None:
    assert token not in trials.PROMPT.encode()
    monkeypatch.setattr(trials, "CHUNK", 8)
    trains(waiting, "q_proj", module)
    shows_only_with(engine, monkeypatch, token)
    try_adapter(waiting.id)
    found = now(waiting)
    assert (found.state, found.report["trial"]["largest_difference"]) == ("ready", 0.5)
    assert found.report["trial"]["text"] == found.report["trial"]["base_text"] == "Ahoy there"
    asked = engine.of(wire.Generate)
    assert [each.adapter is None for each in asked] == [True, False] * (len(asked) // 2)


def test_it_is_refused_once_every_token_was_read_and_none_made_a_difference(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "CHUNK", 10)
    trains(waiting, "embed_tokens")
    engine.script = AHOY
    try_adapter(waiting.id)
    assert codes(waiting) == ["trial_same_as_base"]
    walked = [asked.token_ids for asked in engine.of(wire.Generate) if asked.adapter][1:]
    assert sorted(token for prompt in walked for token in prompt[1:]) == list(range(64))


def test_what_a_trial_had_no_time_to_rule_out_is_not_refused(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "WALK_SECONDS", 0.0)
    trains(waiting, "embed_tokens")
    engine.script = AHOY
    try_adapter(waiting.id)
    found = now(waiting)
    assert (found.state, found.report["trial"]["largest_difference"]) == ("ready", 0)
    assert "all that the trial had time for" in found.report["summary"]


def test_a_walk_stays_within_what_the_engine_holds_and_opens_with_the_invocation(
    engine: FakeEngine, waiting: AdapterVersion
) -> None:
    engine.pool_tokens = 20
    with tenant_scope(ALL_TENANTS):
        AdapterVersion.objects.update(invocation=[7, 8, 9], target_modules=["lm_head"])
    engine.script = AHOY
    try_adapter(waiting.id)
    assert codes(waiting) == ["trial_same_as_base"]
    walked = [asked.token_ids for asked in engine.of(wire.Generate)][2:]
    assert {prompt[:3] for prompt in walked} == {(7, 8, 9)}
    assert max(map(len, walked)) < 20


@given(vocabulary=st.integers(1, 3000), size=st.integers(1, 1100))
def test_chunks_have_every_token_once(vocabulary: int, size: int) -> None:
    chunks = chunks_of(vocabulary, size)
    assert sorted(token for ids in chunks for token in ids) == list(range(vocabulary))
    assert all(1 <= len(ids) <= size for ids in chunks)
    assert 0 in chunks[0] or vocabulary - 1 in chunks[0]


def test_an_activated_adapter_is_tried_with_its_invocation(engine: FakeEngine, waiting: AdapterVersion) -> None:
    with tenant_scope(ALL_TENANTS):
        AdapterVersion.objects.update(invocation=[7, 8, 9])
    engine.scripts.extend([Script(), AHOY])
    try_adapter(waiting.id)
    plain = tuple(trials.PROMPT.encode())
    assert [asked.token_ids for asked in engine.of(wire.Generate)] == [(*plain, 7, 8, 9, *plain)] * 2
    assert now(waiting).state == State.READY


@pytest.mark.parametrize(
    ("code", "told"), [("non_finite_logits", "trial_not_finite"), ("adapter_unavailable", "trial_failed")]
)
def test_what_the_engine_refuses_for_good_is_refused(
    engine: FakeEngine, waiting: AdapterVersion, code: str, told: str
) -> None:
    engine.scripts.extend([Script(), Script(pieces=(), error=wire.EngineError("", code, "/secret/path: no"))])
    try_adapter(waiting.id)
    assert codes(waiting) == [told]
    assert "/secret" not in str(now(waiting).report)


def test_scores_that_are_not_finite_are_refused(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = engine._token

    def broken(job, index):
        event = make(job, index)
        if job.request.adapter is None:
            return event
        scores = [msgspec.structs.replace(each, logprob=math.nan) for each in event.logprobs or ()]
        return msgspec.structs.replace(event, logprobs=tuple(scores))

    monkeypatch.setattr(engine, "_token", broken)
    engine.script = AHOY
    try_adapter(waiting.id)
    assert codes(waiting) == ["trial_not_finite"]


def test_an_engine_that_has_no_room_is_nobodys_attempt(engine: FakeEngine, waiting: AdapterVersion) -> None:
    full = Script(pieces=(), error=wire.EngineError("", "engine_overloaded", "full", permanent=False))
    for _ in range(MAX_TRIALS + 2):
        engine.scripts.extend([Script(), full])
        try_adapter(waiting.id)
        assert (now(waiting).state, now(waiting).check_attempts) == ("checking", 0)


def test_an_engine_that_is_away_leaves_the_version_to_be_tried_again(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.kill()
    monkeypatch.setattr("controlplane.inference.tasks.PATIENCE_SECONDS", 0.05)
    sent: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: sent.append((name, args)))
    for _ in range(MAX_TRIALS + 2):
        try_adapter(waiting.id)
        assert (now(waiting).state, now(waiting).check_attempts) == ("checking", 0)
    with tenant_scope(ALL_TENANTS):
        AdapterVersion.objects.update(state_at=timezone.now() - 2 * STUCK_AFTER)
    resume_checks()
    assert sent == [("inference.try_adapter", (waiting.id,))]
    monkeypatch.setattr("controlplane.inference.tasks.PATIENCE_SECONDS", 5)
    engine.start()
    engine.scripts.extend([Script(), AHOY])
    try_adapter(waiting.id)
    assert now(waiting).state == State.READY


def test_an_engine_of_another_base_model_is_as_good_as_away(engine: FakeEngine, waiting: AdapterVersion) -> None:
    engine.base_model = "another"
    try_adapter(waiting.id)
    assert now(waiting).state == State.CHECKING
    assert engine.of(wire.Generate) == []


def test_an_adapter_that_ends_engines_ends_no_more_than_a_few(engine: FakeEngine, waiting: AdapterVersion) -> None:
    for lost in range(1, MAX_TRIALS + 1):
        engine.scripts.extend([Script(), replace(AHOY, finish="engine_restart")])
        try_adapter(waiting.id)
        assert (now(waiting).state, now(waiting).check_attempts) == ("checking", lost)
    engine.script = AHOY
    try_adapter(waiting.id)
    assert codes(waiting) == ["trial_failed"]
    assert len([asked for asked in engine.of(wire.Generate) if asked.adapter]) == MAX_TRIALS


def test_a_trial_that_hangs_is_stopped(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "PATIENCE_SECONDS", 0.2)
    engine.scripts.extend([Script(), Script(hang_after=1)])
    try_adapter(waiting.id)
    assert (now(waiting).state, now(waiting).check_attempts) == ("checking", 1)
    _, hung = engine.of(wire.Generate)
    with EngineCalls(engine.url) as calls:
        calls.describe()
    assert [asked.request_id for asked in engine.of(wire.Abort)] == [hung.request_id]


def test_what_waits_for_nothing_is_left_alone(engine: FakeEngine, waiting: AdapterVersion) -> None:
    with tenant_scope(ALL_TENANTS):
        AdapterVersion.objects.update(state=State.DELETED)
    try_adapter(waiting.id)
    try_adapter("adv_none")
    assert engine.received == []
    assert now(waiting).state == State.DELETED


def test_a_version_deleted_during_its_trial_stays_deleted(
    engine: FakeEngine, waiting: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = trials.begin_trial

    def deleted_meanwhile(version_id: str) -> bool:
        known = begin(version_id)
        with tenant_scope(ALL_TENANTS):
            AdapterVersion.objects.update(state=State.DELETED)
        return known

    monkeypatch.setattr(trials, "begin_trial", deleted_meanwhile)
    engine.scripts.extend([Script(), AHOY])
    try_adapter(waiting.id)
    assert now(waiting).state == State.DELETED


def test_trials_are_nobodys_usage_and_no_discrepancy(engine: FakeEngine, waiting: AdapterVersion) -> None:
    engine.scripts.extend([Script(), AHOY])
    try_adapter(waiting.id)
    assert len(engine.journal) == 2
    with EngineCalls(engine.url) as calls:
        ingest_journal(calls)
    assert (EngineRecord.objects.count(), Discrepancy.objects.count()) == (0, 0)
    assert engine.acknowledged == engine.journal[-1].position
