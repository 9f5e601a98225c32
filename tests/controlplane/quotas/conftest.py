from dataclasses import dataclass

import pytest

from controlplane.quotas.limits import LimitChanges
from controlplane.quotas.models import Quota
from controlplane.quotas.subjects import Whose, subject_of
from tenants.ids import new_id
from tenants.models import Membership, Role, User
from tests.controlplane.money import Customer, another_key, customer_named


@pytest.fixture
def acme(db: None) -> Customer:
    return customer_named("acme")


@dataclass
class Levels:
    """A customer whose key was issued by a member, and an adapter that it calls."""

    acme: Customer
    user: User
    adapter_id: str

    def whose(self, level: str) -> Whose:
        found: dict[str, Whose] = {
            "tenant": {}, "member": {"member_id": self.user.id}, "key": {"key_id": self.acme.key.id},
            "adapter": {"adapter_id": self.adapter_id},
        }  # fmt: skip
        return found[level]

    def limit(self, level: str, changes: LimitChanges) -> None:
        self.acme.limit(changes, **self.whose(level))

    def quota(self, level: str) -> Quota:
        return self.acme.quota(**self.whose(level))

    def quota_id(self, level: str) -> str:
        return subject_of(self.acme.tenant.id, self.whose(level)).id


def levels_of(slug: str) -> Levels:
    acme = customer_named(slug)
    user = User.objects.create(email=f"{slug}@acme.example")
    Membership.objects.create(tenant=acme.tenant, user=user, role=Role.DEVELOPER)
    acme.key = another_key(acme, "of a member")
    acme.key.created_by = user
    acme.key.save(update_fields=["created_by"])
    return Levels(acme, user, new_id("adp"))


@pytest.fixture
def levels(db: None) -> Levels:
    return levels_of("acme")
