"""The SQL of quotas and holds.

A hold is taken, and ended, by one statement over the rows of all its levels. It locks them first, in their order
(tenant, then key), so that it computes with the newest there is. All its other parts wait for that one, and what they
change they change together or not at all. The hold's own row comes last, as everywhere.

Rows are read as of an instant: what the buckets hold after refilling, what is spent in a month that may just have
begun, what is used in a day that may. `now()` of a transaction that waited for a lock can lie behind what another has
written, so `clock` never goes back behind the days and months that the levels have seen.
"""

from typing import Final

LEVELS: Final = {
    "tenant": "tenant_id = %(tenant)s AND key_id IS NULL",
    "key": "tenant_id = %(tenant)s AND key_id = %(key)s",
}
_BOTH: Final = f"({LEVELS['tenant']}) OR ({LEVELS['key']})"
_MONTH = "date_trunc('month', {at}, 'UTC')"
_DAY = "date_trunc('day', {at}, 'UTC')"


def _refilled(limit: str, credit: str, at: str) -> str:
    elapsed = f"greatest(0, extract(epoch FROM {at} - credited_at))"
    return f"least(60::numeric * {limit}, coalesce({credit}, 60::numeric * {limit}) + {limit} * {elapsed})"


def _as_of(at: str) -> str:
    """A quota's columns at the instant `at`, none of them before what the row has seen."""
    month, day = _MONTH.format(at=at), _DAY.format(at=at)
    is_new_month = f"period = 'month' AND period_start < {month}"
    return f"""
    id, key_id, tenant_weight, concurrency, running, requests_per_minute, tokens_per_minute, tokens_per_day,
    {_refilled("requests_per_minute", "request_credit", at)} AS request_credit,
    {_refilled("tokens_per_minute", "token_credit", at)} AS token_credit,
    CASE WHEN day_start < {day} THEN 0 ELSE day_tokens END AS day_tokens, greatest(day_start, {day}) AS day_start,
    extract(epoch FROM {day} + interval '1 day' - {at}) AS day_ends_in,
    period, budget, held, owed, postpaid_limit,
    CASE WHEN {is_new_month} THEN 0 ELSE spent END AS spent,
    CASE WHEN {is_new_month} THEN greatest(0, held - budget) ELSE excess END AS excess,
    CASE WHEN {is_new_month} THEN {month} ELSE period_start END AS period_start"""


def _locked(where: str) -> str:
    return f"""locked AS MATERIALIZED (
    SELECT quota.* FROM quotas_quota quota {where} ORDER BY quota.key_id NULLS FIRST FOR UPDATE OF quota
), clock AS MATERIALIZED (
    SELECT greatest(now(), max(day_start), max(period_start)) AS at FROM locked
), level AS MATERIALIZED (
    SELECT {_as_of("clock.at")} FROM locked CROSS JOIN clock
)"""  # noqa: S608  # constants only


LOOK: Final = {level: f"SELECT {_as_of('now()')} FROM quotas_quota WHERE {where}" for level, where in LEVELS.items()}  # noqa: S608
LOCKED_BOTH: Final = _locked(f"WHERE {_BOTH}")
LOCK: Final = f"WITH {LOCKED_BOTH} SELECT * FROM level"  # noqa: S608
_NEW_ROW = f"{_MONTH.format(at='now()')}, {_DAY.format(at='now()')}, now()"
ADD_TENANT_ROW: Final = f"""
INSERT INTO quotas_quota (tenant_id, period_start, day_start, credited_at) VALUES (%(tenant)s, {_NEW_ROW})
ON CONFLICT (tenant_id) WHERE key_id IS NULL DO NOTHING
"""  # noqa: S608
ADD_KEY_ROW: Final = f"""
INSERT INTO quotas_quota (tenant_id, key_id, period_start, day_start, credited_at)
VALUES (%(tenant)s, %(key)s, {_NEW_ROW}) ON CONFLICT (key_id) DO NOTHING
"""  # noqa: S608

# No row where a level has no room, or the id is used: then nothing is taken. Without a tenant's row there would be
# nothing to lock, so there is no room either.
TAKE: Final = f"""
WITH {LOCKED_BOTH}, room AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE key_id IS NULL) = 1 AND bool_and(
        (requests_per_minute IS NULL OR request_credit >= 60)
        AND (tokens_per_minute IS NULL OR token_credit >= 60 * %(tokens)s::numeric)
        AND (tokens_per_day IS NULL OR day_tokens + %(tokens)s::bigint <= tokens_per_day)
        AND (concurrency IS NULL OR running < concurrency)
        AND (budget IS NULL OR spent + held + %(amount)s::numeric <= budget)
        AND (postpaid_limit IS NULL OR owed + held + %(amount)s::numeric <= postpaid_limit)
    ) AS is_there FROM level
), opened AS (
    INSERT INTO quotas_hold (request_id, tenant_id, key_id, amount, tokens, created_at, expires_at, context)
    SELECT %(request_id)s, %(tenant)s, %(key)s, %(amount)s::numeric, %(tokens)s::bigint,
        clock.at, now() + %(ttl)s::int * interval '1 second', %(context)s::jsonb
    FROM room CROSS JOIN clock WHERE room.is_there
    ON CONFLICT (request_id) DO NOTHING RETURNING request_id
), taken AS (
    UPDATE quotas_quota quota SET
        request_credit = level.request_credit - 60, token_credit = level.token_credit - 60 * %(tokens)s::numeric,
        credited_at = greatest(quota.credited_at, clock.at),
        day_tokens = level.day_tokens + %(tokens)s::bigint, day_start = level.day_start, running = level.running + 1,
        spent = level.spent, excess = level.excess, period_start = level.period_start,
        held = level.held + %(amount)s::numeric
    FROM level CROSS JOIN clock WHERE quota.id = level.id AND EXISTS (SELECT FROM opened)
)
SELECT key_id, tenant_weight, requests_per_minute, tokens_per_minute,
    request_credit - 60 AS request_credit, token_credit - 60 * %(tokens)s::numeric AS token_credit
FROM level WHERE EXISTS (SELECT FROM opened)
"""  # noqa: S608

# How a hold ends that nobody has settled: with what it came to (settle), or as if it had never been (release, of an
# open one). spent and freed move together: an ordinary end never raises spent + held, so excess grows only by a late
# one. `settled` has no row where there is nothing to end.
_END = """
{locked}, hold AS MATERIALIZED (
    SELECT amount, tokens, state, created_at, is_batch FROM quotas_hold
    WHERE request_id = %(request_id)s AND {may_end} AND (SELECT count(*) FROM level) > 0 FOR UPDATE
), ending AS MATERIALIZED (
    SELECT {spent} AS spent, created_at, CASE state WHEN 'open' THEN amount ELSE 0 END AS freed,
        CASE WHEN state = 'open' AND NOT is_batch THEN 1 ELSE 0 END AS ended,
        CASE WHEN state = 'open' AND NOT is_batch THEN greatest(0, tokens - {used}) ELSE 0 END AS unused,
        CASE state WHEN 'released' THEN 0 ELSE tokens END - {used} AS unused_today
    FROM hold
), counted AS (
    UPDATE quotas_quota quota SET
        spent = level.spent + ending.spent, held = level.held - ending.freed, running = level.running - ending.ended,
        excess = greatest(level.excess, level.spent + ending.spent + level.held - ending.freed - level.budget),
        period_start = level.period_start, day_start = level.day_start, day_tokens = level.day_tokens
            - CASE WHEN ending.created_at >= level.day_start THEN ending.unused_today ELSE 0 END,
        token_credit = least(60::numeric * quota.tokens_per_minute, quota.token_credit + 60::numeric * ending.unused)
    FROM level CROSS JOIN ending WHERE quota.id = level.id
), settled AS (
    UPDATE quotas_hold hold SET {end}, ended_at = coalesce(ended_at, now())
    FROM ending CROSS JOIN clock WHERE hold.request_id = %(request_id)s RETURNING hold.late
)"""
_LOCKED_OF_HOLD = _locked("""JOIN quotas_hold hold ON hold.request_id = %(request_id)s AND hold.settled_amount IS NULL
    AND quota.tenant_id = hold.tenant_id AND (quota.key_id IS NULL OR quota.key_id = hold.key_id)""")
SETTLING: Final = _END.format(
    locked=_LOCKED_OF_HOLD,
    may_end="settled_amount IS NULL",
    spent="least(%(amount)s::numeric, amount)",
    used="%(tokens)s::bigint",
    end="""settled_amount = ending.spent, settled_tokens = %(tokens)s::bigint, settled_at = clock.at,
    late = state <> 'open', state = CASE state WHEN 'open' THEN 'settled' ELSE state END""",
)
_RELEASING = _END.format(
    locked=_LOCKED_OF_HOLD, may_end="state = 'open'", spent="0::numeric", used="0", end="state = 'released'"
)

RELEASE: Final = f"WITH {_RELEASING} SELECT late FROM settled"  # noqa: S608

# Limits change under the row's lock; what is used is counted anew from the holds, so a level that is limited for the
# first time starts with the truth.
SET_LIMITS: Final = {
    level: f"""
UPDATE quotas_quota q SET
    requests_per_minute = %(requests_per_minute)s::int, tokens_per_minute = %(tokens_per_minute)s::bigint,
    concurrency = %(concurrency)s::int, tenant_weight = %(tenant_weight)s::numeric,
    tokens_per_day = %(tokens_per_day)s::bigint, period = %(period)s, budget = %(budget)s::numeric,
    postpaid_limit = %(postpaid_limit)s::numeric,
    period_start = used.period_start, spent = used.spent, held = used.held, running = used.running,
    day_start = used.day_start, day_tokens = used.day_tokens,
    excess = greatest(0, used.spent + used.held - %(budget)s::numeric)
FROM (
    SELECT began.at AS period_start, began.today AS day_start,
        coalesce(sum(settled_amount) FILTER (WHERE settled_at >= began.at), 0) AS spent,
        coalesce(sum(amount) FILTER (WHERE state = 'open'), 0) AS held,
        count(*) FILTER (WHERE state = 'open' AND NOT is_batch) AS running,
        coalesce(sum(coalesce(settled_tokens, CASE state WHEN 'released' THEN 0 ELSE tokens END))
            FILTER (WHERE hold.created_at >= began.today), 0) AS day_tokens
    FROM (
        SELECT CASE WHEN %(period)s = 'month' THEN {_MONTH.format(at="now()")} ELSE timestamptz '1970-01-01 00:00Z' END
            AS at, {_DAY.format(at="now()")} AS today
    ) began
    LEFT JOIN quotas_hold hold ON {where.replace("AND key_id IS NULL", "")} GROUP BY began.at, began.today
) used
WHERE {where.replace("tenant_id", "q.tenant_id").replace("key_id", "q.key_id")}
"""  # noqa: S608
    for level, where in LEVELS.items()
}

LOCK_TENANT: Final = "SELECT id FROM quotas_quota WHERE key_id IS NULL AND tenant_id = %(tenant)s FOR UPDATE"
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
) RETURNING key_id, amount, is_batch
"""
# No tokens: a hold lives longer than the minute in which the bucket has refilled by itself, and what a request used of
# its day is known only once it is settled.
GIVE_BACK: Final = {
    level: f"""
UPDATE quotas_quota SET held = held - %(freed)s::numeric, running = running - %(ended)s::int WHERE {where}
"""  # noqa: S608
    for level, where in LEVELS.items()
}
TENANTS_WITH_EXPIRED: Final = """
SELECT DISTINCT tenant_id FROM quotas_hold WHERE state = 'open' AND expires_at <= now() ORDER BY tenant_id
"""
HOLD: Final = """
SELECT request_id, tenant_id, key_id, amount, tokens, state, late, created_at, context::text AS context
FROM quotas_hold WHERE request_id = %(request_id)s
"""
