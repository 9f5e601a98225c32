"""What is nearly used up: the same as all uses of `limits`, sifted by hand; who sees what of it, and of credit."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.adapters.models import Adapter
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind
from controlplane.quotas.limits import change_limits
from controlplane.quotas.models import Quota
from tenants.key_services import issue_key
from tenants.models import ApiKey
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.money import D

PASSING = {"requests_per_minute", "tokens_per_minute", "concurrency"}
DOLLARS = st.integers(0, 30).map(lambda tenths: D(tenths) / 10)
TOKENS = st.integers(1, 30)


def near(api: Api, share: str | None = None) -> list[dict[str, Any]]:
    status, body = api.get("limits/near" + (f"?share={share}" if share else ""))
    assert status == 200, body
    found: list[dict[str, Any]] = body["data"]
    return found


def named(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["level"], each["label"], each["kind"]) for each in found]


@pytest.fixture
def subjects(cast: Cast) -> dict[str, str | None]:
    """By level, whose limits the tests set."""
    key = ApiKey.objects.get(tenant=cast.acme)
    adapter = Adapter.objects.create(tenant=cast.acme, name="pirate", base_model="base")
    return {"tenant": None, "member_id": cast.people["developer"].id, "key_id": key.id, "adapter_id": adapter.id}


def use(cast: Cast, subjects: dict[str, str | None], level: str, limits: dict[str, Any], **used: Any) -> None:
    """Limits of a level, and what is used of them. Nothing else changes what the rows say is used."""
    whose: dict[str, Any] = {level: subjects[level]} if level != "tenant" else {}
    run_sync(change_limits(tenant_id=cast.acme.id, changes=limits, **whose))  # type: ignore[arg-type]
    if used:
        budget = limits.get("budget")
        over = max(D(0), used.get("spent", D(0)) + used.get("held", D(0)) - budget) if budget is not None else D(0)
        Quota.objects.filter(tenant=cast.acme, subject=subjects[level] or cast.acme.id).update(**used, excess=over)


def sifted(api: Api, share: Decimal) -> list[tuple[Decimal, str, str, str]]:
    """The naive reference: every use there is, looked at one by one."""
    found = []
    for level in api.get("limits")[1]["data"]:
        for each in level["uses"]:
            limit, used = D(each["limit"]), D(each["used"]) + D(each["reserved"])
            from_on = limit if each["kind"] == "soft_budget" else limit * share
            if each["kind"] in PASSING or (each["kind"] == "postpaid_limit" and limit == 0) or used < from_on:
                continue
            left = D(each["left"]) / limit if limit else D(0)
            found.append((left, level["level"], level["label"], each["kind"]))
    return sorted(found, key=lambda each: each[0])


LEVEL = st.fixed_dictionaries(
    {
        "budget": st.none() | DOLLARS, "soft_budget": st.none() | DOLLARS,
        "period": st.sampled_from(["month", "total"]), "concurrency": st.none() | TOKENS,
        "tokens_per_day": st.none() | TOKENS, "tokens_per_month": st.none() | TOKENS,
        "spent": DOLLARS, "held": DOLLARS, "day_tokens": TOKENS, "month_tokens": TOKENS, "running": TOKENS,
    }
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    levels=st.fixed_dictionaries({}, optional=dict.fromkeys(("tenant", "member_id", "key_id", "adapter_id"), LEVEL)),
    postpaid=st.none() | DOLLARS,
    owed=st.integers(-30, 30).map(lambda tenths: D(tenths) / 10),
    share=st.integers(1, 10).map(lambda tenths: D(tenths) / 10),
)
def test_what_is_near_is_all_uses_sifted(
    cast: Cast, owner: Api, subjects: dict[str, str | None], levels: Any, postpaid: Any, owed: Decimal, share: Decimal
) -> None:
    Quota.objects.filter(tenant=cast.acme).delete()
    for level, drawn in levels.items():
        limits = {
            name: drawn[name] for name in ("budget", "period", "tokens_per_day", "tokens_per_month", "concurrency")
        }
        soft, budget = drawn["soft_budget"], drawn["budget"]
        limits["soft_budget"] = soft if soft is None or budget is None else min(soft, budget)
        used = {name: drawn[name] for name in ("spent", "held", "day_tokens", "month_tokens", "running")}
        more = {"postpaid_limit": postpaid} if level == "tenant" else {}
        use(cast, subjects, level, {**limits, **more}, **used, **({"owed": owed} if more else {}))
    expected = sifted(owner, share)
    found = near(owner, str(share))
    credit = [each for each in found if each["kind"] == "credit"]
    rest = [each for each in found if each["kind"] != "credit"]
    assert sorted(named(rest)) == sorted(each[1:] for each in expected)
    assert [left_of(each) for each in rest] == [each[0] for each in expected]  # worst first
    assert bool(credit) == ("tenant" in levels and postpaid == 0)  # no credit was given, and nothing may be owed
    shown = {(level["level"], each["kind"]): each for level in owner.get("limits")[1]["data"] for each in level["uses"]}
    for each in rest:
        told = shown[each["level"], each["kind"]]
        assert {name: each[name] for name in ("unit", "limit", "used", "reserved", "left")} == {
            name: told[name] for name in ("unit", "limit", "used", "reserved", "left")
        }


def left_of(found: dict[str, Any]) -> Decimal:
    return D(found["left"]) / D(found["limit"]) if D(found["limit"]) else D(0)


def test_each_is_named_by_its_level_and_address(cast: Cast, owner: Api, subjects: dict[str, str | None]) -> None:
    for level in subjects:
        use(cast, subjects, level, {"budget": D(10)}, spent=D(8), held=D("0.5"))
    use(cast, subjects, "key_id", {"budget": D(10)}, spent=D("7.99"), held=D(0))
    found = near(owner)
    assert named(found) == [
        ("tenant", "Acme", "monthly_budget"), ("member", "developer@acme.example", "monthly_budget"),
        ("adapter", "pirate", "monthly_budget"),
    ]  # fmt: skip
    assert (found[0]["id"], found[2]["id"]) == (cast.acme.id, subjects["adapter_id"])
    assert (found[0]["used"], found[0]["reserved"], found[0]["left"], found[0]["limit"]) == ("8", "0.5", "1.5", "10")
    assert "binds" not in found[0]


def test_what_is_gone_needs_nobody(cast: Cast, owner: Api, subjects: dict[str, str | None]) -> None:
    key = ApiKey.objects.get(tenant=cast.acme)
    for level in ("key_id", "adapter_id"):
        use(cast, subjects, level, {"tokens_per_day": 10}, day_tokens=10)
    assert len(near(owner)) == 2
    before = timezone.now() - timedelta(minutes=1)
    for gone in ({"revoked_at": before}, {"expires_at": before}):
        ApiKey.objects.filter(id=key.id).update(**{"revoked_at": None, "expires_at": None} | gone)
        assert named(near(owner)) == [("adapter", "pirate", "tokens_per_day")]
    Adapter.objects.update(deleted_at=timezone.now())
    assert near(owner) == []


def test_yesterdays_tokens_and_last_months_money_are_no_matter(
    cast: Cast, owner: Api, subjects: dict[str, str | None]
) -> None:
    limits = {"tokens_per_day": 10, "tokens_per_month": 10, "budget": D(1)}
    use(cast, subjects, "key_id", limits, day_tokens=10, month_tokens=10, spent=D(1))
    assert len(near(owner)) == 3
    with connection.cursor() as cursor:
        cursor.execute("UPDATE quotas_quota SET day_start = day_start - interval '40 days', period_start = day_start")
        cursor.execute("UPDATE quotas_quota SET period_start = period_start - interval '40 days'")
    assert near(owner) == []


def test_everybody_sees_what_they_may(cast: Cast, subjects: dict[str, str | None]) -> None:
    for level in ("member_id", "key_id"):
        use(cast, subjects, level, {"budget": D(1)}, spent=D(1))
    grant_credit(tenant=cast.acme, amount=D(5), kind=GrantKind.PROMO, actor="test")
    use(cast, subjects, "tenant", {}, owed=D("-0.5"))
    seen = {role: {kind for kind, *_ in named(near(signed_in(user)))} for role, user in cast.people.items()}
    assert seen == {
        "owner": {"member", "key", "tenant"}, "admin": {"member", "key", "tenant"}, "developer": {"member", "key"},
        "billing": {"key", "tenant"}, "viewer": {"key"},
    }  # fmt: skip
    assert near(signed_in(cast.stranger)) == []
    program = issue_key(tenant=cast.acme, name="reads", scopes=("usage:read",), actor=cast.owner)[1]
    assert {level for level, *_ in named(near(with_key(program)))} == {"key", "tenant"}


def test_credit_that_is_nearly_gone(cast: Cast, owner: Api, subjects: dict[str, str | None]) -> None:
    later = timezone.now() + timedelta(days=3)
    for number, amount in enumerate((D(6), D(4))):
        grant_credit(
            tenant=cast.acme, amount=amount, kind=GrantKind.PROMO, actor="test", expires_at=later if number else None
        )
    use(cast, subjects, "tenant", {}, owed=D("-2.01"))
    assert near(owner) == []
    use(cast, subjects, "tenant", {}, owed=D("-2.5"), held=D("0.5"))
    [found] = near(owner)
    assert (found["kind"], found["limit"], found["left"], found["reserved"]) == ("credit", "10", "2", "0.5")
    use(cast, subjects, "tenant", {"postpaid_limit": D(5)}, owed=D("4.5"), held=D(0))
    assert [(each["kind"], each["left"]) for each in near(owner)] == [("credit", "0"), ("postpaid_limit", "0.5")]


def test_at_most_a_hundred_levels_and_those_the_worst(cast: Cast, owner: Api, subjects: dict[str, str | None]) -> None:
    for number in range(103):
        key, _ = issue_key(tenant=cast.acme, name=f"key {number}", scopes=("inference",), actor=cast.owner)
        use(cast, {"key_id": key.id}, "key_id", {"tokens_per_month": 1000}, month_tokens=850 + number)
    found = near(owner)
    assert [each["used"] for each in found] == [str(850 + number) for number in range(102, 2, -1)]


@pytest.mark.parametrize("share", ["0", "1.01", "-1", "much", "NaN", ""])
def test_a_mistake_is_named(owner: Api, share: str) -> None:
    status, body = owner.get(f"limits/near?share={share}")
    assert (status, body["error"]["param"]) == (400, "share")


def test_what_is_held_takes_credit_before_anything_is_owed(
    cast: Cast, owner: Api, subjects: dict[str, str | None]
) -> None:
    use(cast, subjects, "tenant", {"postpaid_limit": D(5)}, owed=D(-1), held=D(3))
    [shown] = owner.get("limits")[1]["data"][0]["uses"]
    assert (shown["used"], shown["reserved"], shown["left"]) == ("0", "2", "3")
    use(cast, subjects, "tenant", {"postpaid_limit": D(5)}, owed=D(-4), held=D(3))
    [shown] = owner.get("limits")[1]["data"][0]["uses"]
    assert (shown["used"], shown["reserved"], shown["left"]) == ("0", "0", "5")
