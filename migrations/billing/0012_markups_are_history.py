"""What mark-ups priced stays priced; what they earned and what payments became stays booked. And what the payer of a
mark-up may see of it: a view, as of everything that two tenants share."""

from typing import ClassVar

from django.db import migrations

APPEND_ONLY = ("statementearning", "earnedevent", "paymentreversal")
HISTORY = """
CREATE TRIGGER markup_is_history BEFORE UPDATE OR DELETE ON billing_markup
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_price_change();
ALTER TABLE billing_markup ADD CONSTRAINT markups_do_not_overlap EXCLUDE USING gist (
    adapter_id WITH =, grantee_id WITH =, tstzrange(effective_from, effective_to) WITH &&
) DEFERRABLE INITIALLY DEFERRED;
"""
# A WITH at its top keeps the view from being written through.
VIEW = """
CREATE VIEW billing_askedmarkup WITH (security_barrier) AS
WITH asked AS (
    SELECT id, grantee_id, adapter_id, per_million, earned, effective_from, effective_to FROM billing_markup
    WHERE grantee_id = current_setting('veneer.tenant', true) OR current_user = 'veneer_operator'
) SELECT * FROM asked;
"""


def _append_only(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE TRIGGER {table}_is_append_only BEFORE UPDATE OR DELETE ON billing_{table} "
        "FOR EACH ROW EXECUTE FUNCTION billing_refuse_change()",
        f"DROP TRIGGER {table}_is_append_only ON billing_{table}",
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("billing", "0011_margin_markups_and_payments")]

    operations: ClassVar = [
        *[_append_only(table) for table in APPEND_ONLY],
        migrations.RunSQL(
            HISTORY,
            "ALTER TABLE billing_markup DROP CONSTRAINT markups_do_not_overlap; "
            "DROP TRIGGER markup_is_history ON billing_markup",
        ),
        migrations.RunSQL(VIEW, "DROP VIEW billing_askedmarkup"),
    ]
