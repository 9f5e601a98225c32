"""Whose limit it is: the tenant's own, or that of one member, key or adapter of it."""

from typing import NamedTuple, TypedDict

from controlplane.errors import NotFound
from controlplane.quotas.models import Level
from tenants.models import ApiKey, Membership, Tenant
from tenants.scope import tenant_scope


class Subject(NamedTuple):
    """id: of the tenant, the member's user, the key or the adapter."""

    level: Level
    id: str


class Whose(TypedDict, total=False):
    """At most one is named; none: the tenant itself. member_id: the user's id."""

    member_id: str | None
    key_id: str | None
    adapter_id: str | None


_LEVELS = {"member_id": Level.MEMBER, "key_id": Level.KEY, "adapter_id": Level.ADAPTER}


def subject_of(tenant_id: str, whose: Whose) -> Subject:
    named = [Subject(_LEVELS[name], str(found)) for name, found in whose.items() if found]
    assert len(named) <= 1, named
    return named[0] if named else Subject(Level.TENANT, tenant_id)


def check_exists(tenant: Tenant, subject: Subject) -> None:
    """NotFound for a foreign or missing key or member. Of adapters nothing is known here: who names one has looked."""
    with tenant_scope(tenant.id):
        if subject.level == Level.KEY and not ApiKey.objects.filter(id=subject.id).exists():
            raise NotFound(f"There is no API key {subject.id}.")
        if subject.level == Level.MEMBER and not Membership.objects.filter(user_id=subject.id).exists():
            raise NotFound(f"There is no member {subject.id}.")
