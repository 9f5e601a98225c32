"""Holds: take what a request may use before it runs, correct after, give back. All of it as plans (`tenants.sql`).

Locks are always taken in the order: the tenant's quota, those of its other levels, the hold. So one transaction may end
many holds (the journal's reader does) beside others that end one each.
"""

import json
from decimal import Decimal
from typing import Any

from controlplane.quotas import statements as sql
from controlplane.quotas.models import Level
from controlplane.quotas.rates import Limits, limits_of
from controlplane.quotas.refusals import rate_refusal, reused_id, room_refusal
from tenants.sql import Parts, Plan, Query, Row, run_sync


def reserve(
    *,
    request_id: str,
    tenant_id: str,
    key_id: str,
    tokens: int,
    amount: Decimal,
    ttl_seconds: int,
    adapter_id: str | None = None,
    context: dict[str, Any] | None = None,
) -> Plan[Limits]:
    """Hold `amount` and `tokens` (prompt + the most that may be generated) for one request, on every level that
    has limits: the tenant, the member who issued the key, the key, the adapter.

    request_id: ours, never one that a caller chose. adapter_id: None for the base model. context: what billing needs to
    book the request from the journal alone; JSON. Returns the numbers of the x-ratelimit-* headers.

    Raises RateLimited (rate with a true Retry-After, or concurrency), InsufficientFunds, Conflict for a used id. Each
    rolls the whole transaction back: a refused request leaves no trace.
    """
    assert amount.is_finite(), amount
    assert amount >= 0, amount
    assert tokens >= 0, tokens
    hold = {
        "tenant": tenant_id, "key": key_id, "adapter": adapter_id, "tokens": tokens, "amount": amount,
        "request_id": request_id, "ttl": ttl_seconds, "context": json.dumps(context or {}),
    }  # fmt: skip
    taken = yield Query(sql.TAKE, hold)
    if not taken:
        taken = yield from _take_after_all(hold)
    return limits_of(taken)


def tenant_row(tenant_id: str) -> Query:
    """Makes the row that all of a tenant lock first, where there is none."""
    return Query(sql.ADD_ROW, {"tenant": tenant_id, "level": Level.TENANT.value, "subject": tenant_id})


def _take_after_all(hold: dict[str, Any]) -> Plan[list[Row]]:
    """There was no room at first sight: for a tenant's first request ever, or because what dead requests hold stands in
    the way. Raises the reason where there is none after all."""
    yield tenant_row(hold["tenant"])
    levels = yield Query(sql.LOCK, hold)
    if refusal := rate_refusal(levels, tokens=hold["tokens"]):
        raise refusal
    if room_refusal(levels, hold["amount"]):
        yield from expire_tenant_holds(tenant_id=hold["tenant"])
    taken = yield Query(sql.TAKE, hold)
    if not taken:
        levels = yield Query(sql.LOCK, hold)
        raise room_refusal(levels, hold["amount"]) or reused_id(hold["request_id"])
    return taken


def settling(*, request_id: str, amount: Decimal, tokens: int) -> Parts:
    """Ends a hold with what the request came to, as parts of a statement; the rest goes back. Of them `settled(late)`
    has a row if that booked it.

    Never books more than was held: a larger `amount` is cut to it, and `check_books` then shows the usage event that
    cost more than its settlement. A hold that has ended otherwise is booked late, the one way in which a budget may end
    up overspent.
    """
    assert amount.is_finite(), amount
    assert amount >= 0, amount
    return Parts(sql.SETTLING, {"request_id": request_id, "amount": amount, "tokens": tokens})


def release_hold(*, request_id: str) -> Plan[bool]:
    """End a hold whose request never ran; everything goes back. True if this call ended it."""
    return bool((yield Query(sql.RELEASE, {"request_id": request_id})))


def renew_holds(*, request_ids: list[str], ttl_seconds: int) -> Plan[int]:
    """Keep the holds of requests that still run; returns how many were open and at rest. Send it well before the time
    is over: a hold that is locked just then is left for the next round."""
    rows = yield Query(sql.RENEW_HOLDS, {"request_ids": request_ids, "ttl": ttl_seconds})
    return len(rows)


def expire_tenant_holds(*, tenant_id: str) -> Plan[int]:
    """End up to 500 holds of a tenant whose time is over; what they held goes back. Returns how many."""
    yield Query(sql.LOCK_TENANT, {"tenant": tenant_id})
    [expired] = yield Query(sql.EXPIRE_HOLDS, {"tenant": tenant_id})
    return int(expired["holds"])


def expire_holds() -> int:
    """End every hold whose time is over, a transaction per tenant; returns how many."""
    total = 0
    for row in run_sync(_tenants_with_expired()):
        while expired := run_sync(expire_tenant_holds(tenant_id=row["tenant_id"])):
            total += expired
    return total


def _tenants_with_expired() -> Plan[list[Row]]:
    return (yield Query(sql.TENANTS_WITH_EXPIRED, {}))
