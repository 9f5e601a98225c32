"""What deserves an alert is found, once per threshold and period, whoever looks and however often."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.adapters.models import Adapter
from controlplane.billing.models import Alert, Discrepancy
from controlplane.inference.alerting import find_alerts
from controlplane.quotas.models import Quota
from tenants.audit import record_audit
from tenants.key_services import issue_key
from tenants.models import ApiKey, User
from tests.controlplane.money import Customer, D, another_key, customer_named, everything, side_by_side


@pytest.fixture
def acme(transactional_db: None) -> Iterator[Customer]:
    return customer_named("acme")


def spend(customer: Customer, dollars: str, key: ApiKey | None = None) -> None:
    rows = Quota._base_manager.filter(tenant=customer.tenant, subject=(key or customer.tenant).id)
    rows.update(spent=D(dollars))


def raised(kind: str) -> list[tuple[str, str]]:
    return sorted(everything(Alert).filter(kind=kind).values_list("subject", "occasion"))


@pytest.mark.parametrize(
    "spent, thresholds",
    [("4.999999", []), ("5", [50]), ("7.999999", [50]), ("8", [50, 80]), ("9.89", [50, 80]), ("9.9", [50, 80, 100])],
)
def test_thresholds_of_a_budget(acme: Customer, spent: str, thresholds: list[int]) -> None:
    acme.limit({"budget": D(10)})
    spend(acme, spent)
    month = f"{timezone.now():%Y-%m}"
    assert find_alerts() == len(thresholds)
    assert find_alerts() == 0
    assert raised("budget.threshold") == sorted((acme.tenant.id, f"{month}: {each}") for each in thresholds)


def test_each_level_and_each_period_for_itself(acme: Customer) -> None:
    key = another_key(acme)
    acme.limit({"budget": D(10)})
    acme.limit({"budget": D(2)}, key=key)
    spend(acme, "6")
    spend(acme, "1", key)
    assert find_alerts() == 2
    quota = Quota._base_manager.filter(tenant=acme.tenant, subject=acme.tenant.id)
    quota.update(period_start=timezone.now() - timedelta(days=40))
    Alert._base_manager.all().delete()
    assert find_alerts() == 1  # what was spent last month is no news
    assert raised("budget.threshold")[0][0] == key.id


def test_looking_side_by_side_raises_once(acme: Customer) -> None:
    acme.limit({"budget": D(10)})
    spend(acme, "10")
    side_by_side([find_alerts] * 6)
    assert len(raised("budget.threshold")) == 3


def test_keys_that_expire_within_a_week(acme: Customer) -> None:
    now = timezone.now()
    keys = [
        issue_key(tenant=acme.tenant, name=name, scopes=("inference",), actor=None)[0]
        for name in ("soon", "later", "over", "revoked", "hidden")
    ]
    soon, later, over, revoked, hidden = (ApiKey._base_manager.filter(id=key.id) for key in keys)
    later.update(expires_at=now + timedelta(days=8))
    over.update(expires_at=now - timedelta(seconds=1))
    revoked.update(expires_at=now + timedelta(days=1), revoked_at=now)
    hidden.update(expires_at=now + timedelta(days=1), hidden=True)
    soon.update(expires_at=now + timedelta(days=6))
    assert [find_alerts(), find_alerts()] == [1, 0]
    assert raised("key.expiring")[0][0] == keys[0].id
    soon.update(expires_at=now + timedelta(days=5))
    assert find_alerts() == 1  # another date is another occasion


def test_a_discrepancy_is_the_operators(acme: Customer) -> None:
    Discrepancy.objects.create(kind="usage_conflict", request_id="req_1")
    Discrepancy.objects.create(kind="usage_conflict", request_id="req_2", resolved_at=timezone.now())
    assert [find_alerts(), find_alerts()] == [1, 0]
    found = everything(Alert).get()
    assert (found.tenant_id, found.data["request_id"]) == (None, "req_1")


def test_a_soft_budget_alerts_once_a_period_on_its_level(acme: Customer) -> None:
    key = another_key(acme)
    acme.limit({"soft_budget": D(2), "budget": D(100)})
    acme.limit({"soft_budget": D(0)}, key=key)
    assert find_alerts() == 0
    spend(acme, "2")
    assert (find_alerts(), find_alerts()) == (1, 0)
    spend(acme, "1", key)
    assert find_alerts() == 1
    month = f"{timezone.now():%Y-%m}"
    assert raised("budget.threshold") == sorted((who, f"{month}: soft") for who in (acme.tenant.id, key.id))
    alert = everything(Alert).get(subject=key.id)
    assert alert.data["name"] == "the key another (a soft one: requests still pass)"


def test_members_and_adapters_have_budgets_too(acme: Customer) -> None:
    user = User.objects.create(email="dev@acme.example")
    adapter = Adapter.objects.create(tenant=acme.tenant, name="pirate", base_model="base")
    for subject in (user, adapter):
        acme.limit({"budget": D(10)}, **{"member_id" if subject is user else "adapter_id": subject.id})
        Quota._base_manager.filter(subject=subject.id).update(spent=D(5))
    assert find_alerts() == 2
    named = {alert.data["name"]: alert.data["percent"] for alert in everything(Alert).all()}
    assert named == {"the member dev@acme.example": 50, "the adapter pirate": 50}


def test_a_name_that_was_rolled_back_and_a_grant_that_ended(acme: Customer) -> None:
    """Told from the audit log: each deed once, a second of the same kind again, and old ones never."""
    globex = customer_named("globex")
    adapter = Adapter.objects.create(tenant=acme.tenant, name="bot", base_model="base")
    moved = {"tenant": acme.tenant, "actor": "usr", "action": "alias.roll_back", "target": adapter.id}
    record_audit(**moved, details={"splits": {"10": 1, "9": 3}})
    ended = {"adapter": adapter.id, "tenant": "globex"}
    record_audit(tenant=acme.tenant, actor="usr", action="grant.revoke", target="agr_1", details=ended)
    record_audit(tenant=acme.tenant, actor="usr", action="alias.set", target=adapter.id)
    assert [find_alerts(), find_alerts()] == [2, 0]
    back = everything(Alert).get(kind="adapter.rolled_back")
    assert (back.tenant_id, back.data["name"], back.data["versions"]) == (acme.tenant.id, "bot", "@9, @10")
    revoked = everything(Alert).get(kind="adapter.revoked")
    assert (revoked.tenant_id, revoked.data["name"]) == (globex.tenant.id, "acme/bot")
    record_audit(**moved, details={"splits": {"9": 1}})
    assert find_alerts() == 1
