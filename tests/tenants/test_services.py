"""Tenants come to be with an owner, or not at all."""

import pytest

from tenants.models import AuditRow, Membership, Tenant, User
from tenants.services import CannotCreate, create_tenant

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


def test_a_tenant_comes_with_its_owner_and_a_record() -> None:
    tenant, admin = create_tenant(
        slug="acme", name="Acme", actor="usr_op", admin_email="Ann@Acme.example", admin_password=PASSWORD
    )
    assert admin.email == "ann@acme.example"
    assert admin.check_password(PASSWORD)
    assert list(Membership.objects.values_list("tenant_id", "user_id", "role")) == [(tenant.id, admin.id, "owner")]
    row = AuditRow.objects.get()
    assert (row.tenant, row.actor, row.action, row.target) == (tenant, "usr_op", "tenant.create", tenant.id)
    assert PASSWORD not in str(row.details)


def test_somebody_with_an_account_joins_with_the_password_they_have() -> None:
    _, first = create_tenant(slug="a", name="A", actor="x", admin_email="ann@a.example", admin_password=PASSWORD)
    _, second = create_tenant(slug="b", name="B", actor="x", admin_email="ANN@a.example")
    assert second == first
    assert first.memberships.count() == 2


@pytest.mark.parametrize(
    ("changes", "field", "taken"),
    [
        ({"slug": "has space"}, "slug", False),
        ({"slug": ""}, "slug", False),
        ({"slug": "taken"}, "slug", True),
        ({"admin_email": "nobody"}, "admin_email", False),
        ({"admin_email": "ann@a.example"}, "admin_email", True),  # with a password for an account that has one
        ({"admin_password": None}, "admin_password", False),
        ({"admin_password": "short"}, "admin_password", False),
    ],
)
def test_what_cannot_be_creates_nothing(changes: dict[str, str | None], field: str, taken: bool) -> None:
    create_tenant(slug="taken", name="A", actor="x", admin_email="ann@a.example", admin_password=PASSWORD)
    arguments = {"slug": "b", "name": "B", "actor": "x", "admin_email": "bob@b.example", "admin_password": PASSWORD}
    with pytest.raises(CannotCreate) as refused:
        create_tenant(**(arguments | changes))  # type: ignore[arg-type]
    assert (refused.value.field, refused.value.taken) == (field, taken)
    assert refused.value.field in refused.value.message or taken
    assert (Tenant.objects.count(), User.objects.count(), AuditRow.objects.count()) == (1, 1, 1)
