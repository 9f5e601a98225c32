"""The record of deeds can be added to, and nothing else."""

import pytest
from django.db import IntegrityError, transaction

from tenants.audit import record_audit
from tenants.key_services import issue_key
from tenants.models import AuditRow, Tenant


@pytest.mark.django_db
def test_nobody_changes_or_removes_what_was_recorded() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    record_audit(tenant=tenant, actor="usr_1", action="key.issue", target="key_1", details={"name": "ci"})
    before = list(AuditRow.objects.values())
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditRow.objects.update(actor="usr_2")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditRow.objects.all().delete()
    assert list(AuditRow.objects.values()) == before


@pytest.mark.django_db
def test_a_deed_that_fails_leaves_no_record() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    with transaction.atomic():
        issue_key(tenant=tenant, name="ci", scopes=("inference",), actor=None)
        transaction.set_rollback(True)
    assert not AuditRow.objects.exists()
