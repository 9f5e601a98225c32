"""What a batch reserves when it is created, and what each of its lines takes of that.

Batches are worked off as there is room: neither their reservation nor their lines count as requests at once, or towards
the limits of a minute. Budgets, the credit limit and the tokens of a day and a month hold for them as for all. A batch
may name many adapters: its reservation is held on the other levels, and each line on its adapter's in full.
"""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from controlplane.quotas import statements as sql
from controlplane.quotas.models import Level
from controlplane.quotas.rates import Limits, limits_of
from controlplane.quotas.refusals import rate_refusal, reused_id, room_refusal
from controlplane.quotas.services import tenant_row
from tenants.sql import Plan, Query, Row

# `share` is what a line brings along of its batch's reservation; `asked` what it needs of each level beyond that, less
# than nothing where the reservation was more than it needs. No row where a level has no room, or the id is used.
_TAKE: Final = f"""
WITH {sql.LOCKED_LEVELS}, pot AS MATERIALIZED (
    SELECT amount, tokens, created_at FROM quotas_hold WHERE request_id = %(pot)s AND tenant_id = %(tenant)s
    AND key_id = %(key)s AND state = 'open' AND (SELECT count(*) FROM seen) > 0 FOR UPDATE
), share AS MATERIALIZED (
    SELECT coalesce(max(least(%(share_amount)s::numeric, amount)), 0) AS amount,
        coalesce(max(least(%(share_tokens)s::bigint, tokens)), 0) AS tokens, max(created_at) AS since FROM pot
), asked AS MATERIALIZED (
    SELECT seen.id,
        %(amount)s::numeric - CASE WHEN level < {sql.ADAPTER} THEN share.amount ELSE 0 END AS amount,
        %(tokens)s::bigint - CASE WHEN level < {sql.ADAPTER} AND share.since >= seen.day_start
            THEN share.tokens ELSE 0 END AS of_day,
        %(tokens)s::bigint - CASE WHEN level < {sql.ADAPTER} AND share.since >= {sql.MONTH_SEEN}
            THEN share.tokens ELSE 0 END AS of_month
    FROM seen CROSS JOIN share
), room AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE level = 0) = 1 AND bool_and(
        (of_day <= 0 OR tokens_per_day IS NULL OR day_tokens + of_day <= tokens_per_day)
        AND (of_month <= 0 OR tokens_per_month IS NULL OR month_tokens + of_month <= tokens_per_month)
        AND (amount <= 0 OR budget IS NULL OR spent + held + amount <= budget)
        AND (amount <= 0 OR postpaid_limit IS NULL OR owed + held + amount <= postpaid_limit)
    ) AS is_there FROM seen JOIN asked USING (id)
), opened AS (
    INSERT INTO quotas_hold (
        request_id, tenant_id, member_id, key_id, adapter_id, amount, tokens, created_at, expires_at, context, is_batch)
    SELECT %(request_id)s, %(tenant)s, (SELECT member_id FROM whose), %(key)s, %(adapter)s, %(amount)s::numeric,
        %(tokens)s::bigint, clock.at, now() + %(ttl)s::int * interval '1 second', %(context)s::jsonb, true
    FROM room CROSS JOIN clock WHERE room.is_there
    ON CONFLICT (request_id) DO NOTHING RETURNING request_id
), shrunk AS (
    UPDATE quotas_hold hold SET amount = hold.amount - share.amount, tokens = hold.tokens - share.tokens
    FROM share WHERE share.since IS NOT NULL AND hold.request_id = %(pot)s AND EXISTS (SELECT FROM opened)
), taken AS (
    UPDATE quotas_quota quota SET
        day_tokens = seen.day_tokens + asked.of_day, month_tokens = seen.month_tokens + asked.of_month,
        day_start = seen.day_start, spent = seen.spent, excess = seen.excess, period_start = seen.period_start,
        held = seen.held + asked.amount
    FROM seen JOIN asked USING (id) WHERE quota.id = seen.id AND EXISTS (SELECT FROM opened)
)
SELECT * FROM seen WHERE EXISTS (SELECT FROM opened)
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
    """Hold what all lines of a batch may use together. Raises InsufficientFunds, RateLimited (tokens of a day or a
    month), and Conflict for a used id."""
    return (
        yield from _take(
            request_id=batch_id,
            tenant=tenant_id,
            key=key_id,
            adapter=None,
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
    adapter_id: str | None = None,
) -> Plan[Limits]:
    """As `reserve`, for one request of a batch's line. Its share leaves the batch's reservation: what of it the request
    does not need goes back, what it needs beyond is taken as for any request."""
    return (
        yield from _take(
            request_id=request_id,
            tenant=tenant_id,
            key=key_id,
            adapter=adapter_id,
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
        yield tenant_row(params["tenant"])
        taken = yield Query(_TAKE, params)
    if not taken:
        raise (yield from _refusal(params))
    return limits_of(taken)


def _refusal(params: dict[str, Any]) -> Plan[Exception]:
    """Which level has no room beyond the line's share; or for all of it, where the reservation has less than that."""
    levels = yield Query(sql.LOCK, params)
    for share in (params["share_tokens"], params["share_amount"]), (0, Decimal(0)):
        rows = [_beyond(row, *share) for row in levels]
        refusal = rate_refusal(rows, tokens=params["tokens"]) or room_refusal(rows, params["amount"])
        if refusal:
            return refusal
    return reused_id(params["request_id"])


def _beyond(row: Row, tokens: int, amount: Decimal) -> Row:
    """A level as it is for a line that brings a share along."""
    found = {**row, **dict.fromkeys(_OF_NO_BATCH)}
    if row["level"] < Level.ADAPTER:
        found |= {f"{span}_tokens": max(0, row[f"{span}_tokens"] - tokens) for span in ("day", "month")}
        found["held"] = max(Decimal(0), row["held"] - amount)
    return found
