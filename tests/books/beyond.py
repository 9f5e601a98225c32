"""Invariants that are no matter of the books' own tables: secrets, deeds on the record, alerts once."""

from collections.abc import Iterable
from typing import Any

from django.db import connection

_TABLES = """
SELECT quote_ident(relname) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND has_table_privilege(oid, 'SELECT') ORDER BY 1
"""
# What people did, by the row that it made. What nobody did by hand has another name than "usr" for its maker.
_DEEDS = """
SELECT id FROM billing_price WHERE created_by = 'usr'
UNION ALL SELECT id FROM billing_grant WHERE created_by = 'usr' AND kind <> 'earned' AND reference LIKE 'grant %'
UNION ALL SELECT id FROM billing_statement WHERE created_by = 'usr'
UNION ALL SELECT id FROM billing_agreement WHERE created_by = 'usr'
"""
# Deeds whose record names what they were done to.
_ON = """
SELECT invoice_id, reference FROM billing_invoiceentry WHERE created_by = 'usr'
"""


def check_secrets(texts: Iterable[str], known: str) -> None:
    """No table holds any of the texts, in any column. known: one that many hold, to show that it would be found."""
    assert _tables_with([known])
    assert _tables_with(texts) == []


def _tables_with(texts: Iterable[str]) -> list[tuple[str]]:
    names = [name for (name,) in _rows(_TABLES)]
    each = [f"SELECT '{name}' FROM {name} t WHERE t::text LIKE ANY(%(like)s::text[])" for name in names]
    return _rows(" UNION ALL ".join(each), {"like": [f"%{text}%" for text in texts]})


def _rows(sql: str, named: dict[str, Any] | None = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, named)
        return cursor.fetchall()


def check_deeds() -> None:
    """Whatever somebody did has a record with its actor, written in the same transaction."""
    of_row = f"""
        SELECT deed.id FROM ({_DEEDS}) deed LEFT JOIN tenants_auditrow record
        ON record.target = deed.id AND record.actor = 'usr' GROUP BY deed.id HAVING count(record.id) <> 1
    """
    on_row = f"""
        SELECT deed.reference FROM ({_ON}) deed LEFT JOIN tenants_auditrow record ON record.target = deed.invoice_id
        AND record.actor = 'usr' AND record.details->>'reference' = deed.reference
        GROUP BY deed.reference HAVING count(record.id) <> 1
    """
    assert _rows(of_row) == []
    assert _rows(on_row) == []


def check_alerts() -> None:
    """Once per threshold and period."""
    twice = "SELECT kind, subject, occasion FROM billing_alert GROUP BY tenant_id, 1, 2, 3 HAVING count(*) > 1"
    assert _rows(twice) == []
