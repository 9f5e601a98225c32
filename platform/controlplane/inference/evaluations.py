"""A worker asks what an evaluation is about, as its tenant's own traffic: priced, held, settled like a call of the
door, so that limits hold and every token is in the books.

A worker that is lost leaves what it had asked to the journal, as a door does, and its evaluation to another.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from controlplane.adapters.answer_checks import contains, follow_schema
from controlplane.adapters.evaluation_runs import (
    Answer,
    Case,
    Run,
    Side,
    begin_try,
    fail_run,
    finish_run,
    hand_on,
    next_case,
    record_answer,
    take_run,
    wait,
)
from controlplane.adapters.queries import ResolvedAdapter
from controlplane.billing.pricing import most_it_may_cost
from controlplane.billing.services import price_for
from controlplane.currency import exact_text
from controlplane.errors import ApiError
from controlplane.events import publish
from controlplane.inference.admission import base_model
from controlplane.inference.comparing import text_of
from controlplane.inference.engine_faults import EngineGone, EngineRefusal, error_of
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.settlement import Account, Ended, settle_request
from controlplane.quotas.services import release_hold, reserve
from engine.protocol import AdapterRef, Generate, Message, Prepared, Sampling, TokenEvent, Usage
from tenants.ids import new_id
from tenants.sql import Plan, run_sync

# Ids of its requests begin so: `traffic` leaves them out.
REQUEST_PREFIX: Final = "evr"
ANSWER_SECONDS: Final = 120.0
HOLD_SECONDS: Final = 180  # longer than an answer may take: a hold is not renewed here
SLICE_SECONDS: Final = 45.0  # then others' evaluations have their turn
GONE_SECONDS: Final = 15.0
BUSY_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Asked:
    """One request of an evaluation."""

    request_id: str
    account: Account
    adapter: ResolvedAdapter | None
    prompt: Prepared
    sampling: Sampling


class Busy(Exception):
    """There is no room for it just now: in the engine, or in the tenant's limits."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


def run_evaluation(engine: EngineCalls, evaluation_id: str) -> None:
    """Go on with it for a while, or to its end. Raises EngineGone."""
    run = take_run(evaluation_id)
    if run is None:
        return
    until = time.monotonic() + SLICE_SECONDS
    try:
        while (case := next_case(run)) is not None:
            for side in case.missing:
                record_answer(run, case, side, _answer(engine, run, case, side))
            if time.monotonic() > until:
                hand_on(run)
                return
        finish_run(run)
    except Busy as busy:
        wait(run, busy.seconds)
    except ApiError as error:
        fail_run(run, error.code, error.message)
    except EngineGone:
        wait(run, GONE_SECONDS)
        raise


def _answer(engine: EngineCalls, run: Run, case: Case, side: Side) -> Answer:
    """Raises Busy; ApiError where the evaluation cannot go on (no money, no price); EngineGone."""
    if case.is_given_up:
        return _failed("", "engine_unavailable", "The engine was lost with this prompt, time and again.")
    account = run_sync(_account(run, run.sides[side]), tenant=run.tenant_id)
    try:
        prompt = engine.prepare(case.prompt.get("prompt"), _messages(case.prompt))
    except EngineRefusal as refusal:
        return _refused("", refusal)
    sampling = Sampling(run.max_tokens, temperature=0.0)
    asked = Asked(new_id(REQUEST_PREFIX), account, run.sides[side], prompt, sampling)
    weight = _hold(asked)
    begin_try(case)
    started_at, began = datetime.now(UTC), time.monotonic()
    try:
        events = engine.generate(_request(run, asked, weight), seconds=ANSWER_SECONDS + 5)
    except EngineRefusal as refusal:
        return _after_refusal(asked, refusal, started_at)
    latency = time.monotonic() - began
    usage, reason = events[-1].usage, events[-1].finish_reason
    assert usage is not None
    _settle(asked, usage, reason or "stop", started_at)
    if reason not in ("stop", "length"):
        raise EngineGone(f"the answer ended by {reason}")
    return _checked(case, asked, events, usage, round(latency * 1000))


def _account(run: Run, adapter: ResolvedAdapter | None) -> Plan[Account]:
    base, adapter_id = base_model(), adapter.adapter_id if adapter else None
    price = yield from price_for(tenant_id=run.tenant_id, base_model=base, adapter_id=adapter_id)
    version_id, model = (adapter.version_id, adapter.name) if adapter else (None, base)
    return Account(run.tenant_id, run.key_id, adapter_id, version_id, model, base, price)


def _messages(prompt: dict[str, Any]) -> tuple[Message, ...] | None:
    return tuple(Message(**each) for each in prompt["messages"]) if "messages" in prompt else None


def _hold(asked: Asked) -> float:
    """The tenant's weight. Raises Busy; ApiError where waiting would not help."""
    account, prompt, most = asked.account, len(asked.prompt.token_ids), asked.sampling.max_tokens
    plan = reserve(
        request_id=asked.request_id,
        tenant_id=account.tenant_id,
        key_id=account.key_id,
        tokens=prompt + most,
        amount=most_it_may_cost(account.price, prompt=prompt, max_completion=most),
        ttl_seconds=HOLD_SECONDS,
        context=account.to_context(),
    )
    try:
        return float(run_sync(plan, tenant=account.tenant_id).weight)
    except ApiError as error:
        seconds = error.headers.get("Retry-After")
        if seconds is None or error.headers.get("x-should-retry") == "false":
            raise
        raise Busy(float(seconds)) from None


def _request(run: Run, asked: Asked, weight: float) -> Generate:
    adapter = asked.adapter
    ref = AdapterRef(adapter.version_id, adapter.uri, adapter.digest, adapter.rank) if adapter else None
    return Generate(
        asked.request_id,
        run.tenant_id,
        run.cache_salt,
        asked.prompt.token_ids,
        asked.sampling,
        ref,
        tenant_weight=weight,
        deadline_s=ANSWER_SECONDS,
    )


def _after_refusal(asked: Asked, refusal: EngineRefusal, started_at: datetime) -> Answer:
    error = refusal.error
    if error.usage is None:  # it never ran, so the journal has no line for it
        run_sync(release_hold(request_id=asked.request_id), tenant=asked.account.tenant_id)
    else:
        _settle(asked, error.usage, f"error:{error.code}", started_at)
    return _refused(asked.request_id, refusal)


def _settle(asked: Asked, usage: Usage, reason: str, started_at: datetime) -> None:
    tenant_id = asked.account.tenant_id
    ended = Ended(asked.request_id, usage, reason, started_at, datetime.now(UTC))
    if run_sync(settle_request(asked.account, ended), tenant=tenant_id):
        publish(tenant_id=tenant_id, event="usage.recorded", data=ended.fact(asked.account))


def _refused(request_id: str, refusal: EngineRefusal) -> Answer:
    """Raises Busy where the same may be asked again."""
    error = error_of(refusal.error, {})
    if not refusal.error.permanent:
        raise Busy(refusal.error.retry_after_s or BUSY_SECONDS)
    return _failed(request_id, error.code, error.message)


def _failed(request_id: str, code: str, message: str) -> Answer:
    return Answer(request_id, error={"code": code, "message": message[:500]})


def _checked(case: Case, asked: Asked, events: list[TokenEvent], usage: Usage, latency_ms: int) -> Answer:
    text = text_of(events)
    return Answer(
        request_id=asked.request_id,
        text=text,
        finish_reason=events[-1].finish_reason or "",
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        latency_ms=latency_ms,
        amount=exact_text(asked.account.amount(usage)),
        contains=contains(case.prompt.get("contains"), text),
        json_schema=follow_schema(case.prompt.get("json_schema"), [text])[0],
    )
