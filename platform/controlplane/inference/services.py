"""One call from its admission to its end. The driver outlives the client's connection."""

import asyncio
import logging
import time
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from controlplane.billing.pricing import most_it_may_cost
from controlplane.errors import ApiError
from controlplane.inference.admission import Order, take_orders
from controlplane.inference.driver import database_away, drive
from controlplane.inference.engine_faults import engine_gone
from controlplane.inference.resources import Door
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Wanted
from controlplane.inference.settlement import total_of
from controlplane.quotas.batch_holds import Share, draw
from controlplane.quotas.rates import Limits
from controlplane.quotas.services import reserve
from tenants.auth import Principal
from tenants.sql import Plan, run_async, run_lean

log = logging.getLogger(__name__)
# A status can only be told before the first byte; a client and its proxies want some byte before they give up.
FIRST_EVENT_SECONDS = 15.0


async def start(door: Door, principal: Principal, wanted: Wanted, request_id: str, share: Share | None = None) -> Run:
    """The request, admitted and running: its first event is there, or a stream has waited for it long enough to be
    kept open by comments. Raises ApiError when it does not get that far.

    share: of the batch whose line it is; then it has that price and runs behind what is not a batch's.
    The caller owes the run a `cancel()` when it stops reading."""
    orders = await take_orders(door, principal, wanted, request_id, is_batch=share is not None)
    run = Run(request_id, orders[0].account.model, int(time.time()), tuple(order.prompt for order in orders))
    door.spawn(_drive_all(door, orders, run, share))
    try:
        await run.begin(FIRST_EVENT_SECONDS if wanted.stream else None)
    except asyncio.CancelledError:
        run.cancel()
        raise
    return run


async def _drive_all(door: Door, orders: list[Order], run: Run, share: Share | None) -> None:
    try:
        # One hold is taken by one statement; several need a transaction around them.
        run_plan = run_lean if len(orders) == 1 else run_async
        limits = await run_plan(
            door.pool, _hold_all(orders, door.hold_ttl, share), tenant=orders[0].principal.tenant_id
        )
        run.admit(limits.headers())
        door.held.update(order.request_id for order in orders)
        weight, n = float(limits.weight), orders[0].sampling.n
        drives = [drive(door, order, run, i * n, weight) for i, order in enumerate(orders)]
        used = [await drives[0]] if len(drives) == 1 else await asyncio.gather(*drives)
        ends = [(order.account, usage) for order, usage in zip(orders, used, strict=True) if usage is not None]
        run.finish(Ending(*total_of(ends)))
    except ApiError as error:
        run.fail(error)
    except (psycopg.OperationalError, PoolTimeout) as exc:
        log.error("%s: the database is away: %s", run.request_id, exc)
        run.fail(database_away())
    finally:
        if not run.is_over:  # the door closes
            run.fail(engine_gone())


def _hold_all(orders: list[Order], ttl_seconds: int, share: Share | None) -> Plan[Limits]:
    """Reserve the worst case of every prompt, or of none; the rate limits as they then are.

    Raises RateLimited or InsufficientFunds."""
    assert orders
    for order in orders:
        prompt = len(order.prompt.token_ids)
        hold: dict[str, Any] = {
            "request_id": order.request_id,
            "tenant_id": order.principal.tenant_id,
            "key_id": order.principal.key_id,
            "adapter_id": order.account.adapter_id,
            "tokens": prompt + order.most_tokens,
            "amount": most_it_may_cost(order.account.price, prompt=prompt, max_completion=order.most_tokens),
            "ttl_seconds": ttl_seconds,
            "context": order.account.to_context(),
        }
        if share is None:
            limits = yield from reserve(**hold)
        else:
            limits = yield from draw(**hold, share=share)
            share = Share(share.batch_id)  # all of it went with the first
    return limits
