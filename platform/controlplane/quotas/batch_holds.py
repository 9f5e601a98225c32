"""What a batch reserves when it is created, and what each of its lines takes of that.

Batches are worked off as there is room: neither their reservation nor their lines count as requests at once, or towards
the limits of a minute. Budgets, the credit limit and the tokens of a day hold for them as for all.
"""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from controlplane.quotas import statements as sql
from controlplane.quotas.rates import Limits, limits_of
from controlplane.quotas.refusals import rate_refusal, reused_id, room_refusal
from tenants.sql import Plan, Query, Row

# `share` is what a line brings along of its batch's reservation; `asked` what it needs of each level beyond that, less
# than nothing where the reservation was more than it needs. No row where a level has no room, or the id is used.
_TAKE: Final = f"""
WITH {sql.LOCKED_BOTH}, pot AS MATERIALIZED (
    SELECT amount, tokens, created_at FROM quotas_hold WHERE request_id = %(pot)s AND tenant_id = %(tenant)s
    AND key_id = %(key)s AND state = 'open' AND (SELECT count(*) FROM level) > 0 FOR UPDATE
), share AS MATERIALIZED (
    SELECT coalesce(max(least(%(share_amount)s::numeric, amount)), 0) AS amount,
        coalesce(max(least(%(share_tokens)s::bigint, tokens)), 0) AS tokens, max(created_at) AS since FROM pot
), asked AS MATERIALIZED (
    SELECT level.id, %(amount)s::numeric - share.amount AS amount, %(tokens)s::bigint
        - CASE WHEN share.since >= level.day_start THEN share.tokens ELSE 0 END AS tokens
    FROM level CROSS JOIN share
), room AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE key_id IS NULL) = 1 AND bool_and(
        (asked.tokens <= 0 OR tokens_per_day IS NULL OR day_tokens + asked.tokens <= tokens_per_day)
        AND (asked.amount <= 0 OR budget IS NULL OR spent + held + asked.amount <= budget)
        AND (asked.amount <= 0 OR postpaid_limit IS NULL OR owed + held + asked.amount <= postpaid_limit)
    ) AS is_there FROM level JOIN asked USING (id)
), opened AS (
    INSERT INTO quotas_hold (
        request_id, tenant_id, key_id, amount, tokens, created_at, expires_at, context, is_batch)
    SELECT %(request_id)s, %(tenant)s, %(key)s, %(amount)s::numeric, %(tokens)s::bigint,
        clock.at, now() + %(ttl)s::int * interval '1 second', %(context)s::jsonb, true
    FROM room CROSS JOIN clock WHERE room.is_there
    ON CONFLICT (request_id) DO NOTHING RETURNING request_id
), shrunk AS (
    UPDATE quotas_hold hold SET amount = hold.amount - share.amount, tokens = hold.tokens - share.tokens
    FROM share WHERE share.since IS NOT NULL AND hold.request_id = %(pot)s AND EXISTS (SELECT FROM opened)
), taken AS (
    UPDATE quotas_quota quota SET
        day_tokens = level.day_tokens + asked.tokens, day_start = level.day_start, spent = level.spent,
        excess = level.excess, period_start = level.period_start, held = level.held + asked.amount
    FROM level JOIN asked USING (id) WHERE quota.id = level.id AND EXISTS (SELECT FROM opened)
)
SELECT key_id, tenant_weight, requests_per_minute, tokens_per_minute, request_credit, token_credit
FROM level WHERE EXISTS (SELECT FROM opened)
"""  # noqa: S608  # constants only
_OF_NO_BATCH: Final = ("requests_per_minute", "tokens_per_minute", "concurrency")


@dataclass(frozen=True)
class Share:
    """What of a batch's reservation is a line's: at most so much is there for it."""

    batch_id: str
    amount: Decimal = Decimal(0)
    tokens: int = 0


def reserve_batch(
    *, batch_id: str, tenant_id: str, key_id: str, tokens: int, amount: Decimal, ttl_seconds: int
) -> Plan[Limits]:
    """Hold what all lines of a batch may use together. Raises InsufficientFunds, RateLimited (tokens of a day), and
    Conflict for a used id."""
    return (
        yield from _take(
            request_id=batch_id,
            tenant=tenant_id,
            key=key_id,
            tokens=tokens,
            amount=amount,
            ttl=ttl_seconds,
            context={},
            share=Share(""),
        )
    )


def draw(
    *,
    request_id: str,
    tenant_id: str,
    key_id: str,
    tokens: int,
    amount: Decimal,
    ttl_seconds: int,
    context: dict[str, Any],
    share: Share,
) -> Plan[Limits]:
    """As `reserve`, for one request of a batch's line. Its share leaves the batch's reservation: what of it the request
    does not need goes back, what it needs beyond is taken as for any request."""
    return (
        yield from _take(
            request_id=request_id,
            tenant=tenant_id,
            key=key_id,
            tokens=tokens,
            amount=amount,
            ttl=ttl_seconds,
            context=context,
            share=share,
        )
    )


def _take(*, share: Share, context: dict[str, Any], **hold: Any) -> Plan[Limits]:
    params = {
        **hold, "context": json.dumps(context), "pot": share.batch_id, "share_amount": share.amount,
        "share_tokens": share.tokens,
    }  # fmt: skip
    taken = yield Query(_TAKE, params)
    if not taken:
        yield Query(sql.ADD_TENANT_ROW, params)
        taken = yield Query(_TAKE, params)
    if not taken:
        raise (yield from _refusal(params))
    return limits_of(taken)


def _refusal(params: dict[str, Any]) -> Plan[Exception]:
    levels: list[Row] = [{**row, **dict.fromkeys(_OF_NO_BATCH)} for row in (yield Query(sql.LOCK, params))]
    refusal = rate_refusal(levels, tokens=params["tokens"]) or room_refusal(levels, params["amount"])
    return refusal or reused_id(params["request_id"])
