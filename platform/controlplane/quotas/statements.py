"""The SQL of quotas and holds.

A hold is taken, and ended, by one statement over the rows of all its levels. It locks them first, in their order
(tenant, member, key, adapter), so that it computes with the newest there is. All its other parts wait for that one, and
what they change they change together or not at all. The hold's own row comes last, as everywhere.

Rows are read as of an instant: what the buckets hold after refilling, what is spent in a month that may just have
begun, what is used in a day or month that may. `now()` of a transaction that waited for a lock can lie behind what
another has written, so `clock` never goes back behind the days and months that the levels have seen.
"""

from typing import Final

from controlplane.quotas.models import Level

_MONTH = "date_trunc('month', {at}, 'UTC')"
_DAY = "date_trunc('day', {at}, 'UTC')"
MEMBER: Final = Level.MEMBER.value
KEY: Final = Level.KEY.value
ADAPTER: Final = Level.ADAPTER.value
MONTH_SEEN: Final = _MONTH.format(at="seen.day_start")
_ONE: Final = "tenant_id = %(tenant)s AND subject = %(subject)s"


# Refilled more than a minute from now: the clock was put back. A minute fills any bucket, so nothing is owed to before.
_IS_AHEAD: Final = "credited_at > now() + interval '1 minute'"
_CREDITED: Final = f"CASE WHEN quota.{_IS_AHEAD} THEN now() ELSE greatest(quota.credited_at, now()) END"


def _refilled(limit: str, credit: str) -> str:
    elapsed = f"CASE WHEN {_IS_AHEAD} THEN 60 ELSE greatest(0, extract(epoch FROM now() - credited_at)) END"
    return f"least(60::numeric * {limit}, coalesce({credit}, 60::numeric * {limit}) + {limit} * {elapsed})"


def _as_of(at: str) -> str:
    """A quota's columns at the instant `at`, none of them before what the row has seen."""
    month, day = _MONTH.format(at=at), _DAY.format(at=at)
    is_new_month = f"period = 'month' AND period_start < {month}"
    next_month = f"(date_trunc('month', {at} AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC'"
    return f"""
    id, level, subject, tenant_weight, concurrency, running,
    requests_per_minute, tokens_per_minute, tokens_per_day, tokens_per_month,
    {_refilled("requests_per_minute", "request_credit")} AS request_credit,
    {_refilled("tokens_per_minute", "token_credit")} AS token_credit,
    CASE WHEN day_start < {day} THEN 0 ELSE day_tokens END AS day_tokens,
    CASE WHEN day_start < {month} THEN 0 ELSE month_tokens END AS month_tokens,
    greatest(day_start, {day}) AS day_start,
    extract(epoch FROM {day} + interval '24 hours' - {at}) AS day_ends_in,
    extract(epoch FROM {next_month} - {at}) AS month_ends_in,
    period, budget, soft_budget, held, owed, postpaid_limit,
    CASE WHEN {is_new_month} THEN 0 ELSE spent END AS spent,
    CASE WHEN {is_new_month} THEN greatest(0, held - budget) ELSE excess END AS excess,
    CASE WHEN {is_new_month} THEN {month} ELSE period_start END AS period_start"""


def _locked(where: str) -> str:
    return f"""locked AS MATERIALIZED (
    SELECT quota.* FROM quotas_quota quota {where} ORDER BY quota.level FOR UPDATE OF quota
), clock AS MATERIALIZED (
    SELECT greatest(now(), max(day_start), max(period_start)) AS at FROM locked
), seen AS MATERIALIZED (
    SELECT {_as_of("clock.at")} FROM locked CROSS JOIN clock
)"""  # noqa: S608  # constants only


# The member is whoever issued the key.
# As parts of a statement; `seen` has a row for each level.
LOCKED_LEVELS: Final = """whose AS MATERIALIZED (
    SELECT created_by_id AS member_id FROM tenants_apikey WHERE id = %(key)s
), """ + _locked("""WHERE tenant_id = %(tenant)s AND subject = ANY(ARRAY[
        %(tenant)s, (SELECT member_id FROM whose), %(key)s, %(adapter)s
    ]::text[])""")  # noqa: S608  # constants only
LOOK: Final = f"SELECT {_as_of('now()')} FROM quotas_quota WHERE {_ONE}"  # noqa: S608
_SEEN: Final = f"SELECT tenant_id, {_as_of('now()')} FROM quotas_quota WHERE tenant_id = %(tenant)s"  # noqa: S608
# Of the tokens of the day and of the month, what requests that still run may yet use.
_RESERVED: Final = f"""CROSS JOIN LATERAL (
    SELECT coalesce(sum(tokens) FILTER (WHERE created_at >= seen.day_start), 0)::bigint AS day_reserved,
        coalesce(sum(tokens) FILTER (WHERE created_at >= {MONTH_SEEN}), 0)::bigint
            AS month_reserved
    FROM quotas_hold hold WHERE hold.tenant_id = seen.tenant_id AND state = 'open'
        AND seen.subject IN (hold.tenant_id, hold.member_id, hold.key_id, hold.adapter_id)
) open"""  # noqa: S608
LOOK_AT_ALL: Final = f"""
SELECT seen.*, open.day_reserved, open.month_reserved FROM ({_SEEN}) seen {_RESERVED} ORDER BY seen.level, seen.subject
"""  # noqa: S608


def _share(used: str, limit: str) -> str:
    return f"CASE {limit} WHEN 0 THEN 1 ELSE ({used})::numeric / {limit} END"


# Of its limits that do not come back by themselves within a minute, the one that is used most; a soft budget counts
# once it is reached, and a postpaid limit of nothing never: that is credit's. Without an index, which every request
# would have to keep.
_WORST: Final = f"""greatest(
    {_share("spent + held", "budget")}, {_share("day_tokens", "tokens_per_day")},
    {_share("month_tokens", "tokens_per_month")}, {_share("owed + held", "nullif(postpaid_limit, 0)")},
    CASE WHEN spent + held >= soft_budget THEN 1 END
)"""
# Keys that nobody can use any more are left out, and members whom whoever asks may not see.
LOOK_NEAR: Final = f"""
SELECT seen.*, open.day_reserved, open.month_reserved FROM (
    SELECT known.*, most.used FROM ({_SEEN}) known CROSS JOIN LATERAL (SELECT {_WORST} AS used) most
    WHERE most.used >= %(share)s::numeric
        AND (known.level <> {MEMBER} OR %(sees_members)s::boolean OR known.subject = %(self)s::text)
        AND NOT (known.level = {KEY} AND EXISTS (
            SELECT FROM tenants_apikey key WHERE key.id = known.subject
                AND (key.revoked_at <= now() OR key.expires_at <= now())))
    ORDER BY most.used DESC, known.level, known.subject LIMIT %(most)s::int
) seen {_RESERVED} ORDER BY seen.used DESC, seen.level, seen.subject
"""  # noqa: S608
LOCK: Final = f"WITH {LOCKED_LEVELS} SELECT * FROM seen"  # noqa: S608
ADD_ROW: Final = f"""
INSERT INTO quotas_quota (tenant_id, level, subject, period_start, day_start, credited_at)
VALUES (%(tenant)s, %(level)s, %(subject)s, {_MONTH.format(at="now()")}, {_DAY.format(at="now()")}, now())
ON CONFLICT (tenant_id, subject) DO NOTHING RETURNING id
"""  # noqa: S608

# No row where a level has no room, or the id is used: then nothing is taken. Without a tenant's row there would be
# nothing to lock, so there is no room either.
TAKE: Final = f"""
WITH {LOCKED_LEVELS}, room AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE level = 0) = 1 AND bool_and(
        (requests_per_minute IS NULL OR request_credit >= 60)
        AND (tokens_per_minute IS NULL OR token_credit >= 60 * %(tokens)s::numeric)
        AND (tokens_per_day IS NULL OR day_tokens + %(tokens)s::bigint <= tokens_per_day)
        AND (tokens_per_month IS NULL OR month_tokens + %(tokens)s::bigint <= tokens_per_month)
        AND (concurrency IS NULL OR running < concurrency)
        AND (budget IS NULL OR spent + held + %(amount)s::numeric <= budget)
        AND (postpaid_limit IS NULL OR owed + held + %(amount)s::numeric <= postpaid_limit)
    ) AS is_there FROM seen
), opened AS (
    INSERT INTO quotas_hold (
        request_id, tenant_id, member_id, key_id, adapter_id, amount, tokens, created_at, expires_at, context
    )
    SELECT %(request_id)s, %(tenant)s, (SELECT member_id FROM whose), %(key)s, %(adapter)s, %(amount)s::numeric,
        %(tokens)s::bigint, clock.at, now() + %(ttl)s::int * interval '1 second', %(context)s::jsonb
    FROM room CROSS JOIN clock WHERE room.is_there
    ON CONFLICT (request_id) DO NOTHING RETURNING request_id
), taken AS (
    UPDATE quotas_quota quota SET
        request_credit = seen.request_credit - 60, token_credit = seen.token_credit - 60 * %(tokens)s::numeric,
        credited_at = {_CREDITED}, running = seen.running + 1,
        day_tokens = seen.day_tokens + %(tokens)s::bigint, month_tokens = seen.month_tokens + %(tokens)s::bigint,
        day_start = seen.day_start, spent = seen.spent, excess = seen.excess, period_start = seen.period_start,
        held = seen.held + %(amount)s::numeric
    FROM seen CROSS JOIN clock WHERE quota.id = seen.id AND EXISTS (SELECT FROM opened)
)
SELECT level, tenant_weight, requests_per_minute, tokens_per_minute, tokens_per_day, tokens_per_month, concurrency,
    period, budget, soft_budget, request_credit - 60 AS request_credit,
    token_credit - 60 * %(tokens)s::numeric AS token_credit, day_tokens + %(tokens)s::bigint AS day_tokens,
    month_tokens + %(tokens)s::bigint AS month_tokens, running + 1 AS running, spent,
    held + %(amount)s::numeric AS held, day_ends_in, month_ends_in
FROM seen WHERE EXISTS (SELECT FROM opened)
"""  # noqa: S608

# How a hold ends that nobody has settled: with what it came to (settle), or as if it had never been (release, of an
# open one). spent and freed move together: an ordinary end never raises spent + held, so excess grows only by a late
# one. `settled` has no row where there is nothing to end.
_END = """
{locked}, hold AS MATERIALIZED (
    SELECT amount, tokens, state, created_at, is_batch FROM quotas_hold
    WHERE request_id = %(request_id)s AND {may_end} AND (SELECT count(*) FROM seen) > 0 FOR UPDATE
), ending AS MATERIALIZED (
    SELECT {spent} AS spent, created_at, CASE state WHEN 'open' THEN amount ELSE 0 END AS freed,
        CASE WHEN state = 'open' AND NOT is_batch THEN 1 ELSE 0 END AS ended,
        CASE WHEN state = 'open' AND NOT is_batch THEN greatest(0, tokens - {used}) ELSE 0 END AS unused,
        CASE state WHEN 'released' THEN 0 ELSE tokens END - {used} AS counted_too_much
    FROM hold
), counted AS (
    UPDATE quotas_quota quota SET
        spent = seen.spent + ending.spent, held = seen.held - ending.freed, running = seen.running - ending.ended,
        excess = greatest(seen.excess, seen.spent + ending.spent + seen.held - ending.freed - seen.budget),
        period_start = seen.period_start, day_start = seen.day_start,
        day_tokens = seen.day_tokens
            - CASE WHEN ending.created_at >= seen.day_start THEN ending.counted_too_much ELSE 0 END,
        month_tokens = seen.month_tokens
            - CASE WHEN ending.created_at >= {month} THEN ending.counted_too_much ELSE 0 END,
        token_credit = least(60::numeric * quota.tokens_per_minute, quota.token_credit + 60::numeric * ending.unused)
    FROM seen CROSS JOIN ending WHERE quota.id = seen.id
), settled AS (
    UPDATE quotas_hold hold SET {end}, ended_at = coalesce(ended_at, now())
    FROM ending CROSS JOIN clock WHERE hold.request_id = %(request_id)s RETURNING hold.late
)"""
_LOCKED_OF_HOLD = _locked("""JOIN quotas_hold hold ON hold.request_id = %(request_id)s AND hold.settled_amount IS NULL
    AND quota.tenant_id = hold.tenant_id
    AND quota.subject = ANY(ARRAY[hold.tenant_id, hold.member_id, hold.key_id, hold.adapter_id])""")
SETTLING: Final = _END.format(
    locked=_LOCKED_OF_HOLD,
    month=MONTH_SEEN,
    may_end="settled_amount IS NULL",
    spent="least(%(amount)s::numeric, amount)",
    used="%(tokens)s::bigint",
    end="""settled_amount = ending.spent, settled_tokens = %(tokens)s::bigint, settled_at = clock.at,
    late = state <> 'open', state = CASE state WHEN 'open' THEN 'settled' ELSE state END""",
)
_RELEASING = _END.format(
    locked=_LOCKED_OF_HOLD,
    month=MONTH_SEEN,
    may_end="state = 'open'",
    spent="0::numeric",
    used="0",
    end="state = 'released'",
)

RELEASE: Final = f"WITH {_RELEASING} SELECT late FROM settled"  # noqa: S608

# Under the row's lock. What is used already stays used: `excess` is how far a lowered budget is overdrawn.
SET_LIMITS: Final = f"""
WITH {_locked(f"WHERE {_ONE}")}
UPDATE quotas_quota quota SET
    requests_per_minute = %(requests_per_minute)s::int, tokens_per_minute = %(tokens_per_minute)s::bigint,
    tokens_per_day = %(tokens_per_day)s::bigint, tokens_per_month = %(tokens_per_month)s::bigint,
    concurrency = %(concurrency)s::int, tenant_weight = %(tenant_weight)s::numeric, period = %(period)s,
    budget = %(budget)s::numeric, soft_budget = %(soft_budget)s::numeric, postpaid_limit = %(postpaid_limit)s::numeric,
    spent = seen.spent, period_start = seen.period_start, day_tokens = seen.day_tokens,
    month_tokens = seen.month_tokens, day_start = seen.day_start,
    excess = greatest(0, seen.spent + seen.held - %(budget)s::numeric)
FROM seen WHERE quota.id = seen.id
"""  # noqa: S608
# What a level has used, counted anew from the holds: of one that is limited for the first time, and of one whose budget
# is for another period than before.
RECOUNT: Final = f"""
UPDATE quotas_quota quota SET
    period_start = used.period_start, spent = used.spent, held = used.held, running = used.running,
    day_start = used.day_start, day_tokens = used.day_tokens, month_tokens = used.month_tokens,
    excess = greatest(0, used.spent + used.held - quota.budget)
FROM (
    SELECT began.at AS period_start, began.today AS day_start,
        coalesce(sum(settled_amount) FILTER (WHERE settled_at >= began.at), 0) AS spent,
        coalesce(sum(amount) FILTER (WHERE state = 'open'), 0) AS held,
        count(*) FILTER (WHERE state = 'open' AND NOT is_batch) AS running,
        coalesce(sum(coalesce(settled_tokens, CASE state WHEN 'released' THEN 0 ELSE tokens END))
            FILTER (WHERE hold.created_at >= began.today), 0) AS day_tokens,
        coalesce(sum(coalesce(settled_tokens, CASE state WHEN 'released' THEN 0 ELSE tokens END))
            FILTER (WHERE hold.created_at >= began.month), 0) AS month_tokens
    FROM (
        SELECT CASE WHEN %(period)s = 'month' THEN {_MONTH.format(at="now()")} ELSE timestamptz '1970-01-01 00:00Z' END
            AS at, {_DAY.format(at="now()")} AS today, {_MONTH.format(at="now()")} AS month
    ) began
    LEFT JOIN quotas_hold hold ON hold.tenant_id = %(tenant)s
        AND %(subject)s::text IN (hold.tenant_id, hold.member_id, hold.key_id, hold.adapter_id)
        AND (hold.settled_at IS NULL OR hold.settled_at >= least(began.at, began.month))
    GROUP BY began.at, began.today, began.month
) used
WHERE {_ONE}
"""  # noqa: S608

LOCK_TENANT: Final = "SELECT id FROM quotas_quota WHERE tenant_id = %(tenant)s AND subject = %(tenant)s FOR UPDATE"
# SKIP LOCKED, here and below: a hold that somebody is ending or renewing right now needs neither, and waiting for one
# while holding another could deadlock.
RENEW_HOLDS: Final = """
UPDATE quotas_hold SET expires_at = greatest(expires_at, now() + %(ttl)s::int * interval '1 second')
WHERE request_id IN (
    SELECT request_id FROM quotas_hold WHERE request_id = ANY(%(request_ids)s::text[]) AND state = 'open'
    FOR UPDATE SKIP LOCKED
) RETURNING request_id
"""
# No tokens come back: a hold lives longer than the minute in which the bucket has refilled by itself, and what a
# request used of its day and month is known only once it is settled. The tenant's row is locked before.
EXPIRE_HOLDS: Final = """
WITH expired AS (
    UPDATE quotas_hold SET state = 'expired', ended_at = now()
    WHERE request_id IN (
        SELECT request_id FROM quotas_hold WHERE tenant_id = %(tenant)s AND state = 'open' AND expires_at <= now()
        ORDER BY request_id LIMIT 500 FOR UPDATE SKIP LOCKED
    ) RETURNING tenant_id, member_id, key_id, adapter_id, amount, is_batch
), freed AS (
    SELECT subject, sum(amount) AS amount, count(*) FILTER (WHERE NOT is_batch) AS holds
    FROM expired CROSS JOIN LATERAL unnest(ARRAY[tenant_id, member_id, key_id, adapter_id]) subject GROUP BY subject
), given_back AS (
    UPDATE quotas_quota quota SET held = held - freed.amount, running = running - freed.holds
    FROM freed WHERE quota.tenant_id = %(tenant)s AND quota.subject = freed.subject
)
SELECT count(*) AS holds FROM expired
"""
TENANTS_WITH_EXPIRED: Final = """
SELECT DISTINCT tenant_id FROM quotas_hold WHERE state = 'open' AND expires_at <= now() ORDER BY tenant_id
"""
HOLD: Final = """
SELECT request_id, tenant_id, key_id, amount, tokens, state, late, created_at, context::text AS context
FROM quotas_hold WHERE request_id = %(request_id)s
"""
