"""One request from admission to settlement. The driver outlives the client's connection: whatever happens to that,
the engine is stopped and every generated token is settled."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from psycopg_pool import PoolTimeout

from controlplane.billing.pricing import most_it_may_cost
from controlplane.errors import ApiError, Unavailable
from controlplane.events import publish_async
from controlplane.inference.admission import Order, take_order
from controlplane.inference.engine_faults import EngineGone, EngineRefusal, engine_gone, error_of
from controlplane.inference.engine_stream import EngineStream
from controlplane.inference.resources import Door
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Wanted
from controlplane.inference.settlement import Ended, settle_request
from controlplane.quotas.services import release_hold, reserve
from engine.protocol import Generate, TokenEvent, Usage
from tenants.auth import Principal
from tenants.sql import run_async

log = logging.getLogger(__name__)
ABORT_PATIENCE_SECONDS = 10.0
SETTLE_TRIES = 4
# A status can only be told before the first byte; a client and its proxies want some byte before they give up.
FIRST_EVENT_SECONDS = 15.0


@dataclass(frozen=True)
class _Outcome:
    finish_reason: str
    usage: Usage
    error: ApiError | None = None


async def start(door: Door, principal: Principal, wanted: Wanted, request_id: str) -> Run:
    """The request, admitted and running: its first event is there, or a stream has waited for it long enough to be
    kept open by comments. Raises ApiError when it does not get that far.

    The caller owes the run a `cancel()` when it stops reading."""
    order = await take_order(door, principal, wanted, request_id)
    run = Run(request_id, order.account.model, int(time.time()))
    door.spawn(_drive(door, order, run))
    try:
        await run.begin(FIRST_EVENT_SECONDS if wanted.stream else None)
    except asyncio.CancelledError:
        run.cancel()
        raise
    return run


async def _drive(door: Door, order: Order, run: Run) -> None:
    try:
        await _hold_and_generate(door, order, run)
    except ApiError as error:
        run.fail(error)
    except EngineGone as gone:
        log.warning("%s: %s; its hold waits for the journal", run.request_id, gone)
        run.fail(engine_gone())
    except (psycopg.OperationalError, PoolTimeout) as exc:
        log.error("%s: the database is away: %s", run.request_id, exc)
        run.fail(Unavailable("The database is away: send the request again.", code="database_unavailable"))
    except Exception:
        log.exception("%s: our bug", run.request_id)
        run.fail(Unavailable("Something went wrong on our side.", code="internal_error"))
    finally:
        door.held.discard(run.request_id)
        if not run.is_over:  # the door closes
            run.fail(engine_gone())


async def _hold_and_generate(door: Door, order: Order, run: Run) -> None:
    started_at = datetime.now(UTC)
    run.admit(await _hold(door, order))
    door.held.add(run.request_id)
    request = Generate(
        order.request_id,
        order.principal.tenant_id,
        order.principal.cache_salt,
        order.token_ids,
        order.sampling,
        order.adapter,
    )
    if run.is_cancelled:
        await _give_back(door, run, Unavailable("The client left before the request ran.", code="cancelled"))
        return
    try:
        with door.engine.generate(request) as stream:
            run.on_cancel(lambda: stream.abort(ABORT_PATIENCE_SECONDS))
            outcome = await _pump(stream, run)
    except EngineRefusal as refusal:
        if refusal.error.usage is None:  # it never ran, so the journal has no line for it
            await _give_back(door, run, error_of(refusal.error))
            return
        outcome = _Outcome(f"error:{refusal.error.code}", refusal.error.usage, error_of(refusal.error))
    await _settle(door, order, run, outcome, started_at)


async def _hold(door: Door, order: Order) -> dict[str, str]:
    """Reserve the worst case; the rate headers. Raises RateLimited or InsufficientFunds."""
    prompt, most = len(order.token_ids), order.sampling.max_tokens
    limits = await run_async(
        door.pool,
        reserve(
            request_id=order.request_id,
            tenant_id=order.principal.tenant_id,
            key_id=order.principal.key_id,
            tokens=prompt + most,
            amount=most_it_may_cost(order.account.price, prompt=prompt, max_completion=most),
            ttl_seconds=door.hold_ttl,
            context=order.account.to_context(),
        ),
    )
    return limits.headers()


async def _pump(stream: EngineStream, run: Run) -> _Outcome:
    """Text to the reader until the engine's last event. Its text is passed on before the ending is."""
    while True:
        event: TokenEvent = await stream.next()
        run.feed(event.text)
        if event.finish_reason is not None:
            assert event.usage is not None, f"{run.request_id}: the last event has no usage"
            error = None if event.finish_reason in ("stop", "length") or run.is_cancelled else engine_gone()
            return _Outcome(event.finish_reason, event.usage, error)


async def _give_back(door: Door, run: Run, error: ApiError) -> None:
    await run_async(door.pool, release_hold(request_id=run.request_id))
    run.fail(error)


async def _settle(door: Door, order: Order, run: Run, outcome: _Outcome, started_at: datetime) -> None:
    """Before the client learns the end, so that its next call sees the balance that this one left."""
    ended = Ended(run.request_id, outcome.usage, outcome.finish_reason, started_at, datetime.now(UTC))
    await _settle_surely(door, order, ended)
    log.info("request ended", extra={"tenant": order.principal.tenant_id, **ended.fact(order.account)})
    if outcome.error:
        run.fail(outcome.error)
    else:
        run.finish(Ending(outcome.finish_reason, outcome.usage, order.account.amount(outcome.usage)))


async def _settle_surely(door: Door, order: Order, ended: Ended) -> None:
    """A database that blinks is tried again; one that stays away leaves the request to the journal."""
    for attempt in range(SETTLE_TRIES):
        try:
            is_ours = await run_async(door.pool, settle_request(order.account, ended))
        except (psycopg.OperationalError, PoolTimeout) as exc:
            log.warning("%s: not settled (try %d of %d): %s", ended.request_id, attempt + 1, SETTLE_TRIES, exc)
            await asyncio.sleep(0.2 * 2**attempt)
            continue
        if is_ours:
            fact = ended.fact(order.account)
            await publish_async(tenant_id=order.principal.tenant_id, event="usage.recorded", data=fact)
        return
    log.error("%s: left to the journal", ended.request_id)
