"""What must hold of the books, each as SQL that counts what was `checked` and what is `broken`."""

from typing import Final

from controlplane.billing.rates import rates
from controlplane.billing.rollup import COUNTED

# Zones with half hours, with days that were skipped, and with changes of thirty minutes.
_ZONES = ("UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "America/New_York")
_COUNTED: Final = ", ".join(f"sum({name})" for name in COUNTED)

CHECKS: Final = {
    "each ledger transaction has entries that sum to zero": """
SELECT count(*) AS checked, count(*) FILTER (WHERE entries < 2 OR total <> 0) AS broken FROM (
    SELECT count(entry.id) AS entries, coalesce(sum(entry.amount), 0) AS total
    FROM billing_ledgertransaction booked LEFT JOIN billing_ledgerentry entry ON entry.transaction_id = booked.id
    GROUP BY booked.id
) transactions
""",
    "the whole ledger sums to zero": """
SELECT count(*) AS checked, CASE WHEN coalesce(sum(amount), 0) = 0 THEN 0 ELSE 1 END AS broken FROM billing_ledgerentry
""",
    "each tenant's receivable is its usage less the credit used": """
SELECT count(*) AS checked, count(*) FILTER (WHERE
    (SELECT coalesce(sum(amount), 0) FROM billing_ledgerentry WHERE account_id = tenant.id || ':receivable')
    <> (SELECT coalesce(sum(amount), 0) FROM billing_usageevent WHERE tenant_id = tenant.id)
     - (SELECT coalesce(sum(credit_used), 0) FROM billing_statement WHERE tenant_id = tenant.id)
     + (SELECT coalesce(sum(line.amount), 0) FROM billing_statementline line
        JOIN billing_statement statement ON statement.id = line.statement_id
        WHERE statement.tenant_id = tenant.id AND line.kind NOT IN ('usage', 'late', 'markup'))
     + (SELECT coalesce(sum(tax), 0) FROM billing_invoice WHERE tenant_id = tenant.id)
     + (SELECT coalesce(sum(CASE WHEN kind IN ('refund', 'reversal') THEN amount ELSE -amount END), 0)
        FROM billing_invoiceentry WHERE tenant_id = tenant.id)
     + (SELECT coalesce(sum(owed), 0) FROM billing_paymentreversal WHERE tenant_id = tenant.id)
) AS broken FROM tenants_tenant tenant
""",
    "each tenant's credit is its grants less the credit used, and not below zero": """
SELECT count(*) AS checked, count(*) FILTER (WHERE booked.credit < 0 OR booked.credit
    <> (SELECT coalesce(sum(amount), 0) FROM billing_grant WHERE tenant_id = booked.id)
     - (SELECT coalesce(sum(amount), 0) FROM billing_grantuse WHERE tenant_id = booked.id)
) AS broken FROM (
    SELECT id, (SELECT coalesce(-sum(amount), 0) FROM billing_ledgerentry
        WHERE account_id = tenant.id || ':credit') AS credit
    FROM tenants_tenant tenant
) booked
""",
    "no grant gives more than it holds, and each statement's credit is what grants gave": """
WITH statements AS (
    SELECT credit_used,
        (SELECT coalesce(sum(amount), 0) FROM billing_grantuse WHERE statement_id = statement.id) AS used
    FROM billing_statement statement
)
SELECT count(*) AS checked, count(*) FILTER (WHERE used > given) AS broken FROM (
    SELECT amount AS given, (SELECT coalesce(sum(amount), 0) FROM billing_grantuse WHERE grant_id = grants.id) AS used
    FROM billing_grant grants
    UNION ALL SELECT used, credit_used FROM statements UNION ALL SELECT credit_used, used FROM statements
) sources
""",
    "each usage event has exactly one ledger transaction, of its amount": """
SELECT count(*) AS checked, count(*) FILTER (WHERE
    event.request_id IS NULL OR booked.id IS NULL OR booked.tenant_id <> event.tenant_id
    OR (SELECT count(*) <> CASE WHEN event.earned_amount > 0 THEN 3 ELSE 2 END
        OR count(*) FILTER (WHERE account_id = event.tenant_id || ':receivable' AND amount = event.amount) <> 1
        OR count(*) FILTER (WHERE account_id = 'platform:revenue'
            AND amount = event.earned_amount - event.amount) <> 1
        OR coalesce(sum(amount) FILTER (WHERE account_id = 'platform:royalties'), 0) <> -event.earned_amount
        FROM billing_ledgerentry WHERE transaction_id = booked.id)
) AS broken
FROM billing_usageevent event FULL JOIN (SELECT * FROM billing_ledgertransaction WHERE kind = 'usage') booked
    ON booked.id = 'usage:' || event.request_id
""",
    "cached tokens are a part of prompt tokens": """
SELECT count(*) AS checked, count(*) FILTER (WHERE cached_tokens NOT BETWEEN 0 AND prompt_tokens) AS broken
FROM billing_usageevent
""",
    "each charge is its tokens at the pinned price, computed anew": f"""
SELECT count(*) AS checked, count(*) FILTER (WHERE amount - markup_amount <> 0.000001 * (
    (prompt_tokens - cached_tokens) * input + cached_tokens * cached_input + completion_tokens * output)
    OR markup_amount <> 0.000001 * (prompt_tokens + completion_tokens) * per_million
    OR earned_amount <> 0.000001 * (prompt_tokens + completion_tokens) * earned
) AS broken FROM (
    SELECT event.amount, event.markup_amount, event.earned_amount, event.prompt_tokens, event.cached_tokens,
        event.completion_tokens, coalesce(markup.per_million, 0) AS per_million, coalesce(markup.earned, 0) AS earned,
        {rates(adapter="event.adapter_id", batch="event.is_batch")}
    FROM billing_usageevent event JOIN billing_price price ON price.id = event.price_id
    LEFT JOIN billing_markup markup ON markup.id = event.markup_id
) priced
""",  # noqa: S608  # constants only
    "mark-ups are charged to whom they were set for, on the adapter they were set on": """
SELECT count(*) AS checked, count(*) FILTER (WHERE markup.id IS NULL OR markup.grantee_id <> event.tenant_id
    OR markup.adapter_id IS DISTINCT FROM event.adapter_id) AS broken
FROM billing_usageevent event LEFT JOIN billing_markup markup ON markup.id = event.markup_id
WHERE event.markup_id IS NOT NULL
""",
    "what shared adapters earned is credited to their owners, once, as their statements say": """
WITH credited AS (
    SELECT statement.id, statement.tenant_id,
        (SELECT coalesce(sum(amount), 0) FROM billing_statementearning WHERE statement_id = statement.id) AS lines,
        (SELECT coalesce(sum(amount), 0) FROM billing_grant
            WHERE tenant_id = statement.tenant_id AND reference = 'earned:' || statement.id) AS given,
        (SELECT coalesce(sum(event.earned_amount), 0) FROM billing_earnedevent earned
            JOIN billing_usageevent event ON event.id = earned.event
            JOIN billing_markup markup ON markup.id = event.markup_id AND markup.tenant_id = statement.tenant_id
            WHERE earned.statement_id = statement.id) AS events
    FROM billing_statement statement
)
SELECT count(*) + 1 AS checked, count(*) FILTER (WHERE lines <> given OR given <> events) + CASE WHEN
    (SELECT coalesce(sum(amount), 0) FROM billing_ledgerentry WHERE account_id = 'platform:royalties')
    = coalesce(sum(given), 0) - (SELECT coalesce(sum(earned_amount), 0) FROM billing_usageevent)
    THEN 0 ELSE 1 END AS broken FROM credited
""",
    "each statement is the sum of its lines and of its events": """
SELECT count(*) AS checked, count(*) FILTER (WHERE
    statement.total <> (SELECT coalesce(sum(amount), 0) FROM billing_statementline WHERE statement_id = statement.id)
    OR (SELECT coalesce(sum(amount), 0) FROM billing_statementline
        WHERE statement_id = statement.id AND kind IN ('usage', 'late', 'markup'))
    <> (SELECT coalesce(sum(event.amount), 0) FROM billing_statementevent marked
        JOIN billing_usageevent event ON event.id = marked.event_id WHERE marked.statement_id = statement.id)
    OR (SELECT coalesce(sum(requests), 0) FROM billing_statementline WHERE statement_id = statement.id)
        <> (SELECT count(*) FROM billing_statementevent WHERE statement_id = statement.id)
    OR statement.total <> statement.credit_used + statement.due
) AS broken FROM billing_statement statement
""",
    "each invoice's lines and tax are its total, to the cent and exactly": """
SELECT count(*) AS checked, count(*) FILTER (WHERE
    invoice.total <> invoice.subtotal + invoice.tax
    OR invoice.subtotal <> (SELECT coalesce(sum((line->>'amount')::numeric), 0)
        FROM jsonb_array_elements(invoice.lines) line)
    OR invoice.subtotal + invoice.carried_out <> (SELECT coalesce(sum((line->>'exact')::numeric), 0)
        FROM jsonb_array_elements(invoice.lines) line)
    OR invoice.subtotal + invoice.carried_out <> statement.due + invoice.carried_in
    OR abs(invoice.carried_out) > 0.005
    OR invoice.carried_in <> coalesce((SELECT carried_out FROM billing_invoice before
        WHERE before.tenant_id = invoice.tenant_id AND before.number < invoice.number
        ORDER BY before.number DESC LIMIT 1), 0)
) AS broken FROM billing_invoice invoice JOIN billing_statement statement ON statement.id = invoice.statement_id
""",
    "each statement that comes to something has an invoice": """
SELECT count(*) AS checked, count(*) FILTER (WHERE (statement.total <> 0) <> (invoice.id IS NOT NULL)) AS broken
FROM billing_statement statement LEFT JOIN billing_invoice invoice ON invoice.statement_id = statement.id
WHERE statement.created_at >= coalesce((SELECT min(created_at) FROM billing_invoice), 'infinity')
""",
    "invoices and credit notes are numbered without a gap": """
SELECT coalesce(sum(counter.last), 0)::bigint AS checked, count(*) FILTER (WHERE given.numbers <> counter.last
    OR given.highest <> counter.last) AS broken
FROM billing_counter counter CROSS JOIN LATERAL (
    SELECT count(number) AS numbers, coalesce(max(number), 0) AS highest FROM (
        SELECT number FROM billing_invoice WHERE counter.series = 'invoice'
        UNION ALL SELECT number FROM billing_invoiceentry WHERE counter.series = 'credit_note'
    ) numbered
) given
""",
    "credit notes stay within their invoice, payments within what was open": """
SELECT count(*) AS checked, count(*) FILTER (WHERE booked.noted + booked.paid - booked.payments > booked.total
    OR booked.noted_tax > booked.tax OR booked.refunded > booked.payments
    OR booked.refunded > greatest(0, booked.paid + booked.noted - booked.total)
    OR booked.paid > booked.total + booked.refunded + booked.reversed OR booked.reversed > booked.payments
) AS broken FROM (
    SELECT invoice.total, invoice.tax,
        coalesce(sum(entry.amount) FILTER (WHERE kind = 'credit_note'), 0) AS noted,
        coalesce(sum(entry.tax) FILTER (WHERE kind = 'credit_note'), 0) AS noted_tax,
        coalesce(sum(entry.amount) FILTER (WHERE kind = 'refund'), 0) AS refunded,
        coalesce(sum(entry.amount) FILTER (WHERE kind = 'reversal'), 0) AS reversed,
        coalesce(sum(entry.amount) FILTER (WHERE kind = 'payment'), 0) AS payments,
        coalesce(sum(entry.amount) FILTER (WHERE kind IN ('payment', 'write_off')), 0) AS paid
    FROM billing_invoice invoice LEFT JOIN billing_invoiceentry entry ON entry.invoice_id = invoice.id
    GROUP BY invoice.id
) booked
""",
    "each payment is in the books once, and back out of them as far as it went back": """
SELECT count(*) AS checked, count(*) FILTER (WHERE booked <> CASE WHEN state = 'paid' THEN amount ELSE 0 END
    OR went_back <> CASE WHEN state = 'paid' THEN least(amount, taken) ELSE 0 END
) AS broken FROM (
    SELECT payment.amount, payment.state,
        (SELECT coalesce(sum(amount), 0) FROM billing_invoiceentry
            WHERE tenant_id = payment.tenant_id AND reference = payment.id AND kind = 'payment')
        + (SELECT coalesce(sum(amount), 0) FROM billing_grant
            WHERE tenant_id = payment.tenant_id AND reference = payment.id AND kind = 'paid') AS booked,
        (SELECT coalesce(sum(amount), 0) FROM billing_paymentreversal WHERE payment_id = payment.id) AS went_back,
        (SELECT coalesce(sum(amount), 0) FROM billing_takenback
            WHERE provider = payment.provider AND intent_id = payment.intent_id) AS taken
    FROM billing_payment payment
) payments
""",
    "a tenant's statements follow each other without gap or overlap": """
SELECT count(*) AS checked, count(*) FILTER (WHERE before IS NOT NULL AND period_start <> before) AS broken FROM (
    SELECT period_start, lag(period_end) OVER (PARTITION BY tenant_id ORDER BY period_end) AS before
    FROM billing_statement
) periods
""",
    # An event that was being booked during the close is on the next statement: a minute's grace tells them apart.
    "each event booked and ended before a close is on one statement": """
SELECT count(*) AS checked,
    count(*) FILTER (WHERE marked.event_id IS NULL AND event.booked_at < closed.until - interval '1 minute') AS broken
FROM (SELECT tenant_id, max(period_end) AS until FROM billing_statement GROUP BY tenant_id) closed
JOIN billing_usageevent event ON event.tenant_id = closed.tenant_id AND event.finished_at < closed.until
LEFT JOIN billing_statementevent marked ON marked.event_id = event.id
""",
    "usage by the hour, by the day and in all is the same, in every zone": f"""
SELECT count(*) AS checked, count(*) FILTER (WHERE hourly IS DISTINCT FROM raw OR daily IS DISTINCT FROM raw) AS broken
FROM (VALUES {", ".join(f"('{zone}')" for zone in _ZONES)}) zones (zone) CROSS JOIN LATERAL (
    SELECT (SELECT sum(amount) FROM billing_usageevent) AS raw,
        (SELECT sum(amount) FROM (SELECT sum(amount) AS amount FROM billing_usageevent
            GROUP BY date_trunc('hour', finished_at, zone)) hours) AS hourly,
        (SELECT sum(amount) FROM (SELECT sum(amount) AS amount FROM billing_usageevent
            GROUP BY date_trunc('day', finished_at, zone)) days) AS daily
) sums
""",  # noqa: S608  # constants only
    # Of units that nothing was booked into since.
    "usage that was summed up ahead is what its events come to": f"""
SELECT count(*) AS checked, count(*) FILTER (WHERE rolled.sums IS DISTINCT FROM events.sums) AS broken FROM (
    SELECT tenant_id, width, begins_at, (sum(requests), {_COUNTED}) AS sums
    FROM billing_usagesum GROUP BY 1, 2, 3
) rolled FULL JOIN (
    SELECT tenant_id, width, date_bin(width * interval '1 minute', finished_at, '2000-01-01 00:00Z') AS begins_at,
        max(booked_at) AS booked_at, (count(*)::numeric, {_COUNTED}) AS sums
    FROM billing_usageevent CROSS JOIN (VALUES (15), (60), (1440)) widths (width) GROUP BY 1, 2, 3
) events USING (tenant_id, width, begins_at) CROSS JOIN billing_rollupmark mark
WHERE (events.booked_at IS NULL OR events.booked_at < mark.rolled_at - interval '10 minutes')
    AND begins_at + width * interval '1 minute' <= mark.sealed_to
""",  # noqa: S608  # constants only
    "keys, prices, accounts and statements belong to the tenant whose usage they carry": """
SELECT count(*) AS checked, count(*) FILTER (WHERE other IS NOT NULL AND other <> tenant_id) AS broken FROM (
    SELECT event.tenant_id, key.tenant_id AS other FROM billing_usageevent event
        JOIN tenants_apikey key ON key.id = event.key_id
    UNION ALL SELECT event.tenant_id, price.tenant_id FROM billing_usageevent event
        JOIN billing_price price ON price.id = event.price_id
    UNION ALL SELECT booked.tenant_id, account.tenant_id FROM billing_ledgerentry entry
        JOIN billing_ledgertransaction booked ON booked.id = entry.transaction_id
        JOIN billing_ledgeraccount account ON account.id = entry.account_id
    UNION ALL SELECT invoice.tenant_id, statement.tenant_id FROM billing_invoice invoice
        JOIN billing_statement statement ON statement.id = invoice.statement_id
    UNION ALL SELECT used.tenant_id, grants.tenant_id FROM billing_grantuse used
        JOIN billing_grant grants ON grants.id = used.grant_id
    UNION ALL SELECT entry.tenant_id, invoice.tenant_id FROM billing_invoiceentry entry
        JOIN billing_invoice invoice ON invoice.id = entry.invoice_id
    UNION ALL SELECT event.tenant_id, statement.tenant_id FROM billing_statementevent marked
        JOIN billing_usageevent event ON event.id = marked.event_id
        JOIN billing_statement statement ON statement.id = marked.statement_id
) pairs
""",
    "no discrepancy is open": """
SELECT count(*) AS checked, count(*) FILTER (WHERE resolved_at IS NULL) AS broken FROM billing_discrepancy
""",
}
