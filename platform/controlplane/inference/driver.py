"""One prompt of a call, from the engine's first event to its settlement. It outlives the client's connection: whatever
happens to that, the engine is stopped and every generated token is settled."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from psycopg_pool import PoolTimeout

from controlplane.errors import ApiError, Unavailable
from controlplane.events import publish_async
from controlplane.inference.admission import Order
from controlplane.inference.engine_faults import EngineGone, EngineRefusal, engine_gone, error_of
from controlplane.inference.engine_stream import EngineStream
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
    try:
        with door.engine.generate(_request(order, weight, span.traceparent)) as stream:
            with run.while_wanted(lambda: stream.abort(ABORT_PATIENCE_SECONDS)):
                outcome = await _pump(stream, order, run, first_index)
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


async def _pump(stream: EngineStream, order: Order, run: Run, first_index: int) -> _Outcome:
    """Pieces to the reader until the engine's last event. What comes before the prompt's own log-probabilities waits
    for them, so that an echo can go before every choice."""
    early: list[Piece] = []
    is_early = order.sampling.prompt_logprobs is not None
    first_at: datetime | None = None
    while True:
        event: TokenEvent = await stream.next()
        if first_at is None and event.token_ids:
            first_at = datetime.now(UTC)
        is_early = is_early and event.prompt_logprobs is None and event.usage is None
        body, end = parted(piece_of(event, first_index))
        if is_early:
            early.append(body)
            early += [end] if end else []
            continue
        for piece in (body, *early):
            run.feed(piece)
        early.clear()
        if event.usage is not None:
            assert event.finish_reason is not None, f"{order.request_id}: the last event does not end anything"
            is_well = event.finish_reason in WELL or run.is_cancelled
            return _Outcome(event.finish_reason, event.usage, None if is_well else engine_gone(), end, first_at)
        if end:
            run.feed(end)


async def _give_back(door: Door, order: Order, run: Run, error: ApiError) -> None:
    await run_lean(door.pool, release_hold(request_id=order.request_id), tenant=order.account.tenant_id)
    run.break_off(error)


async def _settle(door: Door, order: Order, outcome: _Outcome, started_at: datetime) -> None:
    """Before the client learns the end, so that its next call sees the balance that this one left."""
    reason, first_at = outcome.finish_reason, outcome.first_at
    ended = Ended(order.request_id, outcome.usage, reason, started_at, datetime.now(UTC), first_at=first_at)
    await _settle_surely(door, order, ended)
    log.info("request ended", extra={"tenant": order.principal.tenant_id, **ended.fact(order.account)})


async def _settle_surely(door: Door, order: Order, ended: Ended) -> None:
    """A database that blinks is tried again; one that stays away leaves the request to the journal."""
    for attempt in range(SETTLE_TRIES):
        try:
            is_ours = await run_lean(door.pool, settle_request(order.account, ended), tenant=order.account.tenant_id)
        except (psycopg.OperationalError, PoolTimeout) as exc:
            log.warning("%s: not settled (try %d of %d): %s", ended.request_id, attempt + 1, SETTLE_TRIES, exc)
            await asyncio.sleep(0.2 * 2**attempt)
            continue
        if is_ours:
            fact = ended.fact(order.account)
            await publish_async(tenant_id=order.principal.tenant_id, event="usage.recorded", data=fact)
        return
    log.error("%s: left to the journal", ended.request_id)
