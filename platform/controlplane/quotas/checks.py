"""What must hold of quotas and holds, each as SQL that counts what was `checked` and what is `broken`."""

from typing import Final

CHECKS: Final = {
    "each quota's spent, held, running and tokens of the day are the sums of its holds": """
SELECT count(*) AS checked, count(*) FILTER (WHERE quota.spent <> used.spent OR quota.held <> used.held
    OR quota.running <> used.running OR quota.day_tokens <> used.day_tokens OR quota.month_tokens <> used.month_tokens
) AS broken
FROM quotas_quota quota CROSS JOIN LATERAL (
    SELECT coalesce(sum(settled_amount) FILTER (WHERE settled_at >= quota.period_start), 0) AS spent,
        coalesce(sum(amount) FILTER (WHERE state = 'open'), 0) AS held,
        count(*) FILTER (WHERE state = 'open' AND NOT is_batch) AS running,
        coalesce(sum(coalesce(settled_tokens, CASE state WHEN 'released' THEN 0 ELSE tokens END))
            FILTER (WHERE created_at >= quota.day_start), 0) AS day_tokens,
        coalesce(sum(coalesce(settled_tokens, CASE state WHEN 'released' THEN 0 ELSE tokens END))
            FILTER (WHERE created_at >= date_trunc('month', quota.day_start, 'UTC')), 0) AS month_tokens
    FROM quotas_hold hold
    WHERE hold.tenant_id = quota.tenant_id
        AND quota.subject IN (hold.tenant_id, hold.member_id, hold.key_id, hold.adapter_id)
) used
""",
    "what is available is never below zero, but for what was booked late or lowered": """
SELECT count(*) AS checked, count(*) FILTER (WHERE spent < 0 OR held < 0 OR spent + held > budget + excess) AS broken
FROM quotas_quota
""",
    "each hold has at most one end, and settled no more than it held": """
SELECT count(*) AS checked, count(*) FILTER (WHERE NOT CASE state
    WHEN 'open' THEN ended_at IS NULL AND settled_amount IS NULL
    WHEN 'settled' THEN ended_at IS NOT NULL AND settled_amount <= amount AND NOT late
    ELSE ended_at IS NOT NULL AND coalesce(settled_amount, 0) <= amount AND late = (settled_amount IS NOT NULL) END
) AS broken FROM quotas_hold
""",
    "no hold is open past its time and a sweep": """
SELECT count(*) AS checked, count(*) FILTER (WHERE expires_at < now() - interval '30 seconds') AS broken
FROM quotas_hold WHERE state = 'open'
""",
    "holds and quotas belong to the tenants of their keys": """
SELECT count(*) AS checked, count(*) FILTER (WHERE owned.tenant_id <> key.tenant_id) AS broken
FROM (
    SELECT tenant_id, key_id FROM quotas_hold
    UNION ALL SELECT tenant_id, subject FROM quotas_quota WHERE level = 2
) owned JOIN tenants_apikey key ON key.id = owned.key_id
""",
}
# Not wrong, but somebody should know.
WARNINGS: Final = {
    "holds settled after they had expired or been released": "SELECT count(*) AS found FROM quotas_hold WHERE late",
    "budgets overspent by late bookings or lowered below what was used": """
SELECT count(*) AS found FROM quotas_quota WHERE spent + held > budget
""",
}
