"""Holds: take what a request may use before it runs, correct after, give back. All of it as plans (`tenants.sql`).

Locks are always taken in the order: the tenant's quota, the key's quota, the hold. So one transaction may end many
holds (the journal's reader does) beside others that end one each.
"""

import json
from decimal import Decimal
from enum import IntEnum
from typing import Any

from controlplane.quotas import statements as sql
from controlplane.quotas.rates import Limits, limits_of
from controlplane.quotas.refusals import budget_refusal, concurrency_refusal, rate_refusal, reused_id
from tenants.sql import Plan, Query, Row, run_sync


class Settlement(IntEnum):
    """What a settlement did. False: nothing, the hold is missing or was settled before."""

    NOTHING = 0
    SETTLED = 1
    LATE = 2  # the hold had expired or been released: booked all the same, and flagged


def reserve(
    *,
    request_id: str,
    tenant_id: str,
    key_id: str,
    tokens: int,
    amount: Decimal,
    ttl_seconds: int,
    context: dict[str, Any] | None = None,
) -> Plan[Limits]:
    """Hold `amount` dollars and `tokens` (prompt + the most that may be generated) for one request.

    request_id: ours, never one that a caller chose. context: what billing needs to book the request from the journal
    alone; JSON. Returns the numbers of the x-ratelimit-* headers.

    Raises RateLimited (rate with a true Retry-After, or concurrency), InsufficientFunds, Conflict for a used id. Each
    rolls the whole transaction back: a refused request leaves no trace.
    """
    assert amount.is_finite(), amount
    assert amount >= 0, amount
    assert tokens >= 0, tokens
    need = {"tenant": tenant_id, "key": key_id, "tokens": tokens, "amount": amount}
    rows = []
    for level in sql.LEVELS:
        row = yield from _take(level, need)
        if row is not None:
            rows.append(row)
    yield from _check_concurrency(rows, need)
    hold = {**need, "request_id": request_id, "ttl": ttl_seconds, "context": json.dumps(context or {})}
    if not (yield Query(sql.OPEN_HOLD, hold)):
        raise reused_id(request_id)
    return limits_of(rows)


def _take(level: str, need: dict[str, Any]) -> Plan[Row | None]:
    """Take from one level, or raise the reason. None where the level has no limits."""
    taken = yield Query(sql.TAKE[level], need)
    if taken:
        return taken[0]
    if level == "tenant":
        yield Query(sql.ADD_TENANT_ROW, need)
    found = yield Query(sql.LOCK[level], need)
    if not found:
        return None
    row = found[0]
    levels = [row]
    if level == "tenant":
        levels += yield Query(sql.LOOK["key"], need)
    if refusal := rate_refusal(levels, tokens=need["tokens"]):
        raise refusal
    if row["budget"] is not None and row["spent"] + row["held"] + need["amount"] > row["budget"]:
        yield from expire_tenant_holds(tenant_id=need["tenant"])
    taken = yield Query(sql.TAKE[level], need)
    if not taken:
        [row] = yield Query(sql.LOOK[level], need)
        raise budget_refusal(row, need["amount"])
    return taken[0]


def _check_concurrency(rows: list[Row], need: dict[str, Any]) -> Plan[None]:
    limited = [row for row in rows if row["concurrency"] is not None]
    if not limited:
        return
    [running] = yield Query(sql.COUNT_OPEN, need)
    for row in limited:
        if running["key" if row["key_id"] else "tenant"] >= row["concurrency"]:
            raise concurrency_refusal(row)


def settle_hold(*, request_id: str, amount: Decimal, tokens: int) -> Plan[Settlement]:
    """End a hold with what the request came to; the rest goes back. True if this call booked it.

    Never books more than was held: a larger `amount` is cut to it, and `check_books` then shows the usage event that
    cost more than its settlement. A hold that has ended otherwise is booked late (`Settlement.LATE`), the one way in
    which a budget may end up overspent.
    """
    assert amount.is_finite(), amount
    assert amount >= 0, amount
    hold = yield from _lock_hold(request_id)
    if hold is None or hold["settled_amount"] is not None:
        return Settlement.NOTHING
    is_open = hold["state"] == "open"
    spent = min(amount, hold["amount"])
    unused = max(0, hold["tokens"] - tokens) if is_open else 0
    periods = yield from _book(hold, spent=spent, freed=hold["amount"] if is_open else Decimal(0), unused_tokens=unused)
    end = {"request_id": request_id, "spent": spent, "tokens": tokens, "not_before": max(periods, default=None)}
    yield Query(sql.SETTLE_HOLD, end)
    return Settlement.SETTLED if is_open else Settlement.LATE


def release_hold(*, request_id: str) -> Plan[bool]:
    """End a hold whose request never ran; everything goes back. True if this call ended it."""
    hold = yield from _lock_hold(request_id)
    if hold is None or hold["state"] != "open":
        return False
    yield from _book(hold, spent=Decimal(0), freed=hold["amount"], unused_tokens=hold["tokens"])
    yield Query(sql.RELEASE_HOLD, {"request_id": request_id})
    return True


def renew_holds(*, request_ids: list[str], ttl_seconds: int) -> Plan[int]:
    """Keep the holds of requests that still run; returns how many were open and at rest. Send it well before the time
    is over: a hold that is locked just then is left for the next round."""
    rows = yield Query(sql.RENEW_HOLDS, {"request_ids": request_ids, "ttl": ttl_seconds})
    return len(rows)


def expire_tenant_holds(*, tenant_id: str) -> Plan[int]:
    """End up to 500 holds of a tenant whose time is over; what they held goes back. Returns how many."""
    yield Query(sql.LOCK_TENANT, {"tenant": tenant_id})
    expired = yield Query(sql.EXPIRE_HOLDS, {"tenant": tenant_id})
    if expired:
        yield from _give_back("tenant", tenant_id, "", expired)
    for key_id in sorted({hold["key_id"] for hold in expired}):
        yield from _give_back("key", tenant_id, key_id, [hold for hold in expired if hold["key_id"] == key_id])
    return len(expired)


def _give_back(level: str, tenant_id: str, key_id: str, holds: list[Row]) -> Plan[None]:
    freed = sum((hold["amount"] for hold in holds), Decimal(0))
    # No tokens: a hold lives longer than the minute in which the token bucket has refilled by itself.
    yield Query(sql.BOOK[level], {"tenant": tenant_id, "key": key_id, "spent": 0, "freed": freed, "unused_tokens": 0})


def _lock_hold(request_id: str) -> Plan[Row | None]:
    """The hold, locked behind its tenant's quota. None where it is missing or settled."""
    if not (yield Query(sql.LOCK_TENANT_OF_HOLD, {"request_id": request_id})):
        return None
    rows = yield Query(sql.LOCK_HOLD, {"request_id": request_id})
    return rows[0] if rows else None


def _book(hold: Row, *, spent: Decimal, freed: Decimal, unused_tokens: int) -> Plan[list[Any]]:
    """Move a hold's money on every level; returns the starts of the periods that it was booked in."""
    whose = {"tenant": hold["tenant_id"], "key": hold["key_id"]}
    change = {**whose, "spent": spent, "freed": freed, "unused_tokens": unused_tokens}
    periods = []
    for level in sql.LEVELS:
        rows = yield Query(sql.BOOK[level], change)
        periods += [row["period_start"] for row in rows]
    return periods


def expire_holds() -> int:
    """End every hold whose time is over, a transaction per tenant; returns how many."""
    total = 0
    for row in run_sync(_tenants_with_expired()):
        while expired := run_sync(expire_tenant_holds(tenant_id=row["tenant_id"])):
            total += expired
    return total


def _tenants_with_expired() -> Plan[list[Row]]:
    return (yield Query(sql.TENANTS_WITH_EXPIRED, {}))
