"""One prompt of a call, from the engine's first event to its settlement. It outlives the client's connection: whatever
happens to that, the engine is stopped and every generated token is settled."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from psycopg_pool import PoolTimeout

from controlplane.errors import ApiError, Unavailable
from controlplane.inference.admission import Order
from controlplane.inference.engine_faults import EngineGone, EngineRefusal, engine_gone, error_of
from controlplane.inference.pieces import WELL, Piece, parted, piece_of
from controlplane.inference.resources import Door
from controlplane.inference.run import Run
from controlplane.inference.settlement import Ended, settle_request
from controlplane.quotas.services import release_hold
from controlplane.tracing import Noted
from engine.protocol import Generate, TokenEvent, Usage
from tenants.sql import run_lean

log = logging.getLogger(__name__)
ABORT_PATIENCE_SECONDS = 10.0
SETTLE_TRIES = 4
MIN_WEIGHT, BATCH_WEIGHT = 0.01, 0.1  # the wire's least; a batch's share beside its tenant's other requests


@dataclass(frozen=True)
class _Outcome:
    """end: what the reader is told only after the settlement. first_at: when the first token came."""

    finish_reason: str
    usage: Usage
    error: ApiError | None = None
    end: Piece | None = None
    first_at: datetime | None = None


async def drive(door: Door, order: Order, run: Run, first_index: int, weight: float) -> Usage | None:
    """What the prompt used; None where it never ran, or where only the journal knows. A failure breaks the run off.

    Its hold is there, and ends here or by the journal."""
    values = {"model": order.account.model, "adapter_version": order.account.adapter_version_id}
    names = {"request_id": order.request_id, "tenant": order.principal.tenant_id}
    try:
        with door.tracing.span("door.generate", **names, **values) as span:
            return await _generate_and_settle(door, order, run, first_index, weight, span)
    except EngineGone as gone:
        log.warning("%s: %s; its hold waits for the journal", order.request_id, gone)
        run.break_off(engine_gone())
    except (psycopg.OperationalError, PoolTimeout) as exc:
        log.error("%s: the database is away: %s", order.request_id, exc)
        run.break_off(database_away())
    except Exception:
        log.exception("%s: our bug", order.request_id)
        run.break_off(Unavailable("Something went wrong on our side.", code="internal_error"))
    finally:
        door.held.discard(order.request_id)
    return None


def database_away() -> ApiError:
    return Unavailable("The database is away: send the request again.", code="database_unavailable")


async def _generate_and_settle(
    door: Door, order: Order, run: Run, first_index: int, weight: float, span: Noted
) -> Usage | None:
    started_at = datetime.now(UTC)
    if run.is_stopped:
        await _give_back(door, order, run, Unavailable("The client left before the request ran.", code="cancelled"))
        return None
    pump = _Pump(order, run, first_index)
    try:
        with door.engine.generate(_request(order, weight, span.traceparent), pump.take) as stream:
            with run.while_wanted(lambda: stream.abort(ABORT_PATIENCE_SECONDS)):
                await stream.end()
        outcome = pump.outcome()
    except EngineRefusal as refusal:
        error = error_of(refusal.error, order.names)
        if refusal.error.usage is None:  # it never ran, so the journal has no line for it
            await _give_back(door, order, run, error)
            return None
        outcome = _Outcome(f"error:{refusal.error.code}", refusal.error.usage, error)
    _note_end(span, outcome)
    await _settle(door, order, outcome, started_at)
    if outcome.error:
        run.break_off(outcome.error)
    elif outcome.end:
        run.feed(outcome.end)
    return outcome.usage


def _note_end(span: Noted, outcome: _Outcome) -> None:
    usage = outcome.usage
    span.note(
        finish_reason=outcome.finish_reason,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )


def _request(order: Order, weight: float, traceparent: str | None) -> Generate:
    return Generate(
        order.request_id,
        order.principal.tenant_id,
        order.principal.cache_salt,
        order.prompt.token_ids,
        order.sampling,
        order.adapter,
        tenant_weight=max(MIN_WEIGHT, weight * BATCH_WEIGHT) if order.account.is_batch else weight,
        background=order.account.is_batch,
        deadline_s=order.deadline_s,
        pooling=order.pooling,
        traceparent=traceparent,
    )


class _Pump:
    """Pieces to the reader until the engine's last event. What comes before the prompt's own log-probabilities waits
    for them, so that an echo can go before every choice."""

    def __init__(self, order: Order, run: Run, first_index: int) -> None:
        self._request_id = order.request_id
        self._run = run
        self._first_index = first_index
        self._early: list[Piece] = []
        self._is_early = order.sampling.prompt_logprobs is not None
        self._first_at: datetime | None = None
        self._last: TokenEvent | None = None
        self._end: Piece | None = None

    def take(self, event: TokenEvent) -> None:
        if self._first_at is None and event.token_ids:
            self._first_at = datetime.now(UTC)
        self._is_early = self._is_early and event.prompt_logprobs is None and event.usage is None
        body, end = parted(piece_of(event, self._first_index))
        if self._is_early:
            self._early += [body, end] if end else [body]
            return
        for piece in (body, *self._early):
            self._run.feed(piece)
        self._early.clear()
        if event.usage is not None:
            self._last, self._end = event, end
        elif end:
            self._run.feed(end)

    def outcome(self) -> _Outcome:
        """Once the last event has been taken."""
        last = self._last
        assert last is not None
        assert last.usage is not None
        assert last.finish_reason is not None, f"{self._request_id}: the last event does not end anything"
        is_well = last.finish_reason in WELL or self._run.is_cancelled
        error = None if is_well else engine_gone()
        return _Outcome(last.finish_reason, last.usage, error, self._end, self._first_at)


async def _give_back(door: Door, order: Order, run: Run, error: ApiError) -> None:
    await run_lean(door.pool, release_hold(request_id=order.request_id), tenant=order.account.tenant_id)
    run.break_off(error)


async def _settle(door: Door, order: Order, outcome: _Outcome, started_at: datetime) -> None:
    """Before the client learns the end, so that its next call sees the balance that this one left."""
    reason, first_at = outcome.finish_reason, outcome.first_at
    ended = Ended(order.request_id, outcome.usage, reason, started_at, datetime.now(UTC), first_at=first_at)
    fact, tenant = ended.fact(order.account), order.principal.tenant_id
    if await _settle_surely(door, order, ended):
        door.announcements.usage(tenant, fact)
    log.info("request ended", extra={"tenant": tenant, **fact})


async def _settle_surely(door: Door, order: Order, ended: Ended) -> bool:
    """True when this call booked it. A database that blinks is tried again; one that stays away leaves the request to
    the journal."""
    for attempt in range(SETTLE_TRIES):
        try:
            return await run_lean(door.pool, settle_request(order.account, ended), tenant=order.account.tenant_id)
        except (psycopg.OperationalError, PoolTimeout) as exc:
            log.warning("%s: not settled (try %d of %d): %s", ended.request_id, attempt + 1, SETTLE_TRIES, exc)
            await asyncio.sleep(0.2 * 2**attempt)
    log.error("%s: left to the journal", ended.request_id)
    return False
