"""The record of deeds can be added to, and nothing else."""

import pytest
from django.db import IntegrityError, ProgrammingError, transaction

from tenants.audit import record_audit
from tenants.key_services import issue_key
from tenants.models import AuditRow, Tenant
from tenants.postgres.base import as_owner
from tenants.scope import ALL_TENANTS, tenant_scope


@pytest.mark.django_db(transaction=True)
def test_nobody_changes_or_removes_what_was_recorded() -> None:
    """The application and its operators have no right to; the tables' owner is stopped by a trigger."""
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    record_audit(tenant=tenant, actor="usr_1", action="key.issue", target="key_1", details={"name": "ci"})
    before = list(AuditRow.objects.values())
    for scope in (tenant.id, ALL_TENANTS):
        with tenant_scope(scope):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                AuditRow.objects.update(actor="usr_2")
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                AuditRow.objects.all().delete()
    with as_owner("default"):
        with pytest.raises(IntegrityError, match="append-only"):
            AuditRow.objects.update(actor="usr_2")
        with pytest.raises(IntegrityError, match="append-only"):
            AuditRow.objects.all().delete()
    assert list(AuditRow.objects.values()) == before


@pytest.mark.django_db
def test_a_deed_that_fails_leaves_no_record() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    with transaction.atomic():
        issue_key(tenant=tenant, name="ci", scopes=("inference",), actor=None)
        transaction.set_rollback(True)
    assert not AuditRow.objects.exists()
