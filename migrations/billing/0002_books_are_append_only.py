"""What is booked stays: triggers refuse to change or delete it, and to commit a transaction that does not balance."""

from typing import ClassVar

from django.contrib.postgres.operations import BtreeGistExtension
from django.db import migrations

APPEND_ONLY = (
    "usageevent", "enginerecord", "ledgeraccount", "ledgertransaction", "ledgerentry", "grant", "statement",
    "statementline", "statementevent",
)  # fmt: skip

REFUSE = """
CREATE FUNCTION billing_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: book a correction instead', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
"""
# A price may only be ended, once or earlier than planned, and never before now: what it priced stays priced.
REFUSE_PRICE = """
CREATE FUNCTION billing_refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - 'effective_to' = to_jsonb(OLD) - 'effective_to'
        AND NEW.effective_to >= now() AND (OLD.effective_to IS NULL OR NEW.effective_to <= OLD.effective_to) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a price can only be ended, and not in the past: set a new one instead'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER price_is_history BEFORE UPDATE OR DELETE ON billing_price
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_price_change();
ALTER TABLE billing_price ADD CONSTRAINT prices_do_not_overlap EXCLUDE USING gist (
    base_model WITH =, coalesce(tenant_id, '') WITH =, coalesce(adapter_id, '') WITH =,
    tstzrange(effective_from, effective_to) WITH &&
) DEFERRABLE INITIALLY DEFERRED;
"""
BALANCED = """
CREATE FUNCTION billing_check_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    which varchar := coalesce(to_jsonb(NEW)->>'transaction_id', to_jsonb(NEW)->>'id');
    entries bigint;
    total numeric;
BEGIN
    SELECT count(*), coalesce(sum(amount), 0) INTO entries, total FROM billing_ledgerentry WHERE transaction_id = which;
    IF entries < 2 OR total <> 0 THEN
        RAISE EXCEPTION 'ledger transaction % has % entries that sum to %, not to 0', which, entries, total
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER transaction_balances AFTER INSERT ON billing_ledgerentry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_check_balanced();
CREATE CONSTRAINT TRIGGER transaction_has_entries AFTER INSERT ON billing_ledgertransaction
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_check_balanced();
"""


def _append_only(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE TRIGGER {table}_is_append_only BEFORE UPDATE OR DELETE ON billing_{table} "
        "FOR EACH ROW EXECUTE FUNCTION billing_refuse_change()",
        f"DROP TRIGGER {table}_is_append_only ON billing_{table}",
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("billing", "0001_initial")]

    operations: ClassVar = [
        BtreeGistExtension(),
        migrations.RunSQL(REFUSE, "DROP FUNCTION billing_refuse_change()"),
        *[_append_only(table) for table in APPEND_ONLY],
        migrations.RunSQL(
            REFUSE_PRICE,
            "ALTER TABLE billing_price DROP CONSTRAINT prices_do_not_overlap; "
            "DROP TRIGGER price_is_history ON billing_price; DROP FUNCTION billing_refuse_price_change()",
        ),
        migrations.RunSQL(
            BALANCED,
            "DROP TRIGGER transaction_balances ON billing_ledgerentry; "
            "DROP TRIGGER transaction_has_entries ON billing_ledgertransaction; DROP FUNCTION billing_check_balanced()",
        ),
    ]
