"""The SQL of quotas and holds. Each level (tenant, then key) is one conditional statement on one row.

Fragments compute a row's values as of the transaction's start on the database's clock: what the buckets hold after
refilling, and what is spent in a month that may just have begun. `now()` of a transaction that waited for a lock can
lie behind what another has written, so clocks only ever move forward.
"""

from typing import Final

LEVELS: Final = {
    "tenant": "tenant_id = %(tenant)s AND key_id IS NULL",
    "key": "tenant_id = %(tenant)s AND key_id = %(key)s",
}

_ELAPSED = "greatest(0, extract(epoch FROM now() - credited_at))"


def _refilled(limit: str, credit: str) -> str:
    return f"least(60::numeric * {limit}, coalesce({credit}, 60::numeric * {limit}) + {limit} * {_ELAPSED})"


_REQUESTS = _refilled("requests_per_minute", "request_credit")
_TOKENS = _refilled("tokens_per_minute", "token_credit")
_MONTH = "date_trunc('month', now(), 'UTC')"
_IS_NEW_MONTH = f"(period = 'month' AND period_start < {_MONTH})"
_SPENT = f"(CASE WHEN {_IS_NEW_MONTH} THEN 0 ELSE spent END)"
_EXCESS = f"(CASE WHEN {_IS_NEW_MONTH} THEN greatest(0, held - budget) ELSE excess END)"
_PERIOD_START = f"(CASE WHEN {_IS_NEW_MONTH} THEN {_MONTH} ELSE period_start END)"

ADD_TENANT_ROW: Final = f"""
INSERT INTO quotas_quota (tenant_id, period_start, credited_at) VALUES (%(tenant)s, {_MONTH}, now())
ON CONFLICT (tenant_id) WHERE key_id IS NULL DO NOTHING
"""  # noqa: S608  # constants only
ADD_KEY_ROW: Final = f"""
INSERT INTO quotas_quota (tenant_id, key_id, period_start, credited_at)
VALUES (%(tenant)s, %(key)s, {_MONTH}, now())
ON CONFLICT (key_id) DO NOTHING
"""  # noqa: S608

TAKE: Final = {
    level: f"""
UPDATE quotas_quota SET
    request_credit = {_REQUESTS} - 60, token_credit = {_TOKENS} - 60 * %(tokens)s::numeric,
    credited_at = greatest(credited_at, now()),
    spent = {_SPENT}, excess = {_EXCESS}, period_start = {_PERIOD_START}, held = held + %(amount)s::numeric
WHERE {where}
    AND (requests_per_minute IS NULL OR {_REQUESTS} >= 60)
    AND (tokens_per_minute IS NULL OR {_TOKENS} >= 60 * %(tokens)s::numeric)
    AND (budget IS NULL OR {_SPENT} + held + %(amount)s::numeric <= budget)
RETURNING key_id, requests_per_minute, request_credit, tokens_per_minute, token_credit, concurrency, tenant_weight
"""  # noqa: S608
    for level, where in LEVELS.items()
}
LOOK: Final = {
    level: f"""
SELECT key_id, requests_per_minute, {_REQUESTS} AS request_credit, tokens_per_minute, {_TOKENS} AS token_credit,
    concurrency, tenant_weight, period, budget, {_SPENT} AS spent, held, {_EXCESS} AS excess,
    {_PERIOD_START} AS period_start
FROM quotas_quota WHERE {where}
"""  # noqa: S608
    for level, where in LEVELS.items()
}
LOCK: Final = {level: f"{sql} FOR UPDATE" for level, sql in LOOK.items()}
# spent and freed move together: an ordinary settlement never raises spent + held, so excess grows only by a late one.
BOOK: Final = {
    level: f"""
UPDATE quotas_quota SET
    spent = {_SPENT} + %(spent)s::numeric, held = held - %(freed)s::numeric,
    excess = greatest({_EXCESS}, {_SPENT} + %(spent)s::numeric + held - %(freed)s::numeric - budget),
    period_start = {_PERIOD_START},
    token_credit = least(60::numeric * tokens_per_minute, token_credit + 60 * %(unused_tokens)s::numeric)
WHERE {where} RETURNING period_start
"""  # noqa: S608
    for level, where in LEVELS.items()
}
# Limits change under the row's lock; what is used is counted anew from the holds, so a level that is limited for the
# first time starts with the truth.
SET_LIMITS: Final = {
    level: f"""
UPDATE quotas_quota q SET
    requests_per_minute = %(requests_per_minute)s::int, tokens_per_minute = %(tokens_per_minute)s::bigint,
    concurrency = %(concurrency)s::int, tenant_weight = %(tenant_weight)s::numeric,
    period = %(period)s, budget = %(budget)s::numeric,
    period_start = used.period_start, spent = used.spent, held = used.held,
    excess = greatest(0, used.spent + used.held - %(budget)s::numeric)
FROM (
    SELECT began.at AS period_start,
        coalesce(sum(settled_amount) FILTER (WHERE settled_at >= began.at), 0) AS spent,
        coalesce(sum(amount) FILTER (WHERE state = 'open'), 0) AS held
    FROM (SELECT CASE WHEN %(period)s = 'month' THEN {_MONTH} ELSE timestamptz '1970-01-01 00:00Z' END AS at) began
    LEFT JOIN quotas_hold ON {where.replace("AND key_id IS NULL", "")} GROUP BY began.at
) used
WHERE {where.replace("tenant_id", "q.tenant_id").replace("key_id", "q.key_id")}
"""  # noqa: S608
    for level, where in LEVELS.items()
}

# A statement of its own, after the rows are locked: only then does its snapshot hold every lease taken before.
COUNT_OPEN: Final = """
SELECT count(*) AS tenant, count(*) FILTER (WHERE key_id = %(key)s) AS key
FROM quotas_hold WHERE tenant_id = %(tenant)s AND state = 'open' AND expires_at > now()
"""
OPEN_HOLD: Final = """
INSERT INTO quotas_hold (request_id, tenant_id, key_id, amount, tokens, expires_at, context)
VALUES (%(request_id)s, %(tenant)s, %(key)s, %(amount)s::numeric, %(tokens)s::bigint,
    now() + %(ttl)s::int * interval '1 second', %(context)s::jsonb)
ON CONFLICT (request_id) DO NOTHING RETURNING request_id
"""
# Locks the tenant's quota for whoever is about to end one of its holds; nothing to lock once that is settled.
LOCK_TENANT_OF_HOLD: Final = """
SELECT id FROM quotas_quota WHERE key_id IS NULL AND tenant_id = (
    SELECT tenant_id FROM quotas_hold WHERE request_id = %(request_id)s AND settled_amount IS NULL
) FOR UPDATE
"""
LOCK_TENANT: Final = "SELECT id FROM quotas_quota WHERE key_id IS NULL AND tenant_id = %(tenant)s FOR UPDATE"
LOCK_HOLD: Final = """
SELECT tenant_id, key_id, amount, tokens, state, settled_amount FROM quotas_hold
WHERE request_id = %(request_id)s FOR UPDATE
"""
SETTLE_HOLD: Final = """
UPDATE quotas_hold SET settled_amount = %(spent)s::numeric, settled_tokens = %(tokens)s::bigint,
    settled_at = greatest(now(), %(not_before)s::timestamptz), ended_at = coalesce(ended_at, now()),
    late = state <> 'open', state = CASE WHEN state = 'open' THEN 'settled' ELSE state END
WHERE request_id = %(request_id)s
"""
RELEASE_HOLD: Final = """
UPDATE quotas_hold SET state = 'released', ended_at = now() WHERE request_id = %(request_id)s
"""
# SKIP LOCKED, here and below: a hold that somebody is ending or renewing right now needs neither, and waiting for one
# while holding another could deadlock.
RENEW_HOLDS: Final = """
UPDATE quotas_hold SET expires_at = greatest(expires_at, now() + %(ttl)s::int * interval '1 second')
WHERE request_id IN (
    SELECT request_id FROM quotas_hold WHERE request_id = ANY(%(request_ids)s::text[]) AND state = 'open'
    FOR UPDATE SKIP LOCKED
) RETURNING request_id
"""
EXPIRE_HOLDS: Final = """
UPDATE quotas_hold SET state = 'expired', ended_at = now()
WHERE request_id IN (
    SELECT request_id FROM quotas_hold WHERE tenant_id = %(tenant)s AND state = 'open' AND expires_at <= now()
    ORDER BY request_id LIMIT 500 FOR UPDATE SKIP LOCKED
) RETURNING key_id, amount, tokens
"""
TENANTS_WITH_EXPIRED: Final = """
SELECT DISTINCT tenant_id FROM quotas_hold WHERE state = 'open' AND expires_at <= now() ORDER BY tenant_id
"""
HOLD: Final = """
SELECT request_id, tenant_id, key_id, amount, tokens, state, late, created_at, context::text AS context
FROM quotas_hold WHERE request_id = %(request_id)s
"""
