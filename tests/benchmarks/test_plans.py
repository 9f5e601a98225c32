"""A plan that reads a big table from end to end is found, however deep it lies; one that does not is left alone."""

import pytest

from benchmarks.pages.timing import _scanned
from tenants.scope import ALL_TENANTS, tenant_scope


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sql, tables",
    [
        ("SELECT count(*) FROM billing_usageevent", {"billing_usageevent"}),
        (
            "SELECT 1 FROM tenants_tenant WHERE 7 IN (SELECT avg(amount) FROM billing_usageevent)",
            {"billing_usageevent"},
        ),
        ("WITH a AS MATERIALIZED (SELECT * FROM quotas_hold) SELECT count(*) FROM a", {"quotas_hold"}),
        ("SELECT 1 FROM billing_usageevent WHERE request_id = 'x'", set()),
        ("UPDATE quotas_quota SET running = 0", set()),
    ],
)
def test_scans_are_found_at_any_depth(sql: str, tables: set[str]) -> None:
    with tenant_scope(ALL_TENANTS):
        assert set(_scanned(sql, ())) - {"tenants_tenant"} == tables
