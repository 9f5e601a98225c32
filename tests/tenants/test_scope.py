"""The guard that catches a forgotten tenant."""

from collections.abc import Iterator

import pytest

from tenants.key_services import issue_key
from tenants.models import ApiKey, Tenant
from tenants.scope import ALL_TENANTS, ScopeMissing, tenant_scope

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenants(db: None) -> Iterator[list[Tenant]]:
    """Two, each with a key; then nobody's rows are in scope."""
    made = [Tenant.objects.create(slug=slug, name=slug) for slug in ("acme", "globex")]
    for tenant in made:
        issue_key(tenant=tenant, name=f"{tenant.slug} key", scopes=("inference",), actor=None)
    with tenant_scope(None):
        yield made


def names() -> list[str]:
    return sorted(ApiKey.objects.values_list("name", flat=True))


def test_without_a_scope_there_is_no_query(tenants: list[Tenant]) -> None:
    with pytest.raises(ScopeMissing):
        names()


def test_a_scope_sees_its_tenant_only_and_ends(tenants: list[Tenant]) -> None:
    acme, globex = tenants
    with tenant_scope(acme.id):
        assert names() == ["acme key"]
        with tenant_scope(globex.id):
            assert names() == ["globex key"]
        assert names() == ["acme key"]
    with tenant_scope(ALL_TENANTS):
        assert names() == ["acme key", "globex key"]
    with pytest.raises(ScopeMissing):
        names()


def test_a_scope_ends_with_an_error_too(tenants: list[Tenant]) -> None:
    with pytest.raises(ZeroDivisionError), tenant_scope(tenants[0].id):
        raise ZeroDivisionError
    with pytest.raises(ScopeMissing):
        names()
