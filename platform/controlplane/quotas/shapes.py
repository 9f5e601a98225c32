"""Limits as JSON: what people send, and what they are shown."""

from decimal import Decimal
from typing import Any, Final

from rest_framework import serializers

from controlplane.errors import InvalidRequest
from controlplane.quotas.limits import LimitChanges
from controlplane.quotas.models import MAX_WEIGHT, MIN_WEIGHT, Level, Period
from controlplane.quotas.queries import QuotaState
from controlplane.quotas.rates import number_text

MAX_TOKENS_PER_MINUTE: Final = 10**12
MAX_TOKENS_PER_DAY: Final = 10**15
MAX_BUDGET: Final = 10**9
COUNTS: Final = ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "tokens_per_month", "concurrency")
BUDGETS: Final = {"monthly_budget": Period.MONTH, "total_budget": Period.TOTAL}


class MoneyOrNone(serializers.DecimalField):
    """null takes a limit away; an empty text, which a form may send by mistake, does not."""

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        return serializers.Field.validate_empty_values(self, data)


def _budget(**more: Any) -> serializers.DecimalField:
    return MoneyOrNone(max_digits=16, decimal_places=6, min_value=0, max_value=MAX_BUDGET, allow_null=True, **more)


def _count(most: int) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=most, allow_null=True, required=False)


class LimitsInput(serializers.Serializer[Any]):
    """What is left out stays as it is; null takes a limit away. Days and months are UTC. Budgets are money: per
    calendar month, or in all. There is one of the two at a time. soft_budget: money of the same period, from which on
    an alert is raised and requests still pass."""

    requests_per_minute = _count(10**9)
    tokens_per_minute = _count(MAX_TOKENS_PER_MINUTE)
    tokens_per_day = _count(MAX_TOKENS_PER_DAY)
    tokens_per_month = _count(MAX_TOKENS_PER_DAY)
    concurrency = _count(10**6)
    monthly_budget = _budget(required=False)
    total_budget = _budget(required=False)
    soft_budget = _budget(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = set(self.initial_data) - set(self.fields)
        if unknown:
            raise serializers.ValidationError({sorted(unknown)[0]: f"unknown; there is {', '.join(self.fields)}"})
        if attrs.get("monthly_budget") is not None and attrs.get("total_budget") is not None:
            raise serializers.ValidationError({"total_budget": "set monthly_budget or total_budget, not both"})
        return attrs

    def changes(self) -> LimitChanges:
        found = dict(self.validated_data)
        given = {name: found.pop(name) for name in BUDGETS if name in found}
        if given:
            name = next((name for name, budget in given.items() if budget is not None), next(iter(given)))
            found |= {"period": BUDGETS[name], "budget": given[name]}
        return LimitChanges(**found)  # type: ignore[typeddict-item]  # the serializer has checked the names


class TenantLimitsInput(LimitsInput):
    """As for a key. tenant_weight: the tenant's share of the engine while others wait too; one of 2 gets twice what
    one of 1 gets. postpaid_limit: money that the tenant may owe beyond its credit; 0: prepaid only."""

    postpaid_limit = _budget(required=False)

    tenant_weight = serializers.DecimalField(
        max_digits=5, decimal_places=2, min_value=MIN_WEIGHT, max_value=MAX_WEIGHT, required=False
    )


class LimitsShape(serializers.Serializer[Any]):
    """spent and held: money in the budget's period; held is reserved by requests that run now."""

    requests_per_minute = serializers.IntegerField(allow_null=True)
    tokens_per_minute = serializers.IntegerField(allow_null=True)
    tokens_per_day = serializers.IntegerField(allow_null=True)
    tokens_per_month = serializers.IntegerField(allow_null=True)
    concurrency = serializers.IntegerField(allow_null=True)
    monthly_budget = serializers.CharField(allow_null=True)
    total_budget = serializers.CharField(allow_null=True)
    soft_budget = serializers.CharField(allow_null=True)
    spent = serializers.CharField()
    held = serializers.CharField()


class TenantLimitsShape(LimitsShape):
    """owed: money, less the credit there is; below zero while there is credit."""

    postpaid_limit = serializers.CharField(allow_null=True)
    owed = serializers.CharField()
    tenant_weight = serializers.CharField()


class UseShape(serializers.Serializer[Any]):
    """How much of one limit is used. Amounts are exact decimals in strings. used: without what is reserved by requests
    that run now. resets_in: seconds until all of it is there again; null: that has no date. binds: of all limits that
    hold, this one has the smallest share left."""

    kind = serializers.ChoiceField([*COUNTS, *BUDGETS, "soft_budget", "postpaid_limit"])
    unit = serializers.ChoiceField(["requests", "tokens", "money"])
    limit = serializers.CharField()
    used = serializers.CharField()
    reserved = serializers.CharField()
    left = serializers.CharField()
    resets_in = serializers.IntegerField(allow_null=True)
    binds = serializers.BooleanField()


class LevelShape(LimitsShape):
    """Limits of one level, and what is used of them. id: as in the address that sets them; null where there is none,
    as for a member who has left. label: a name for people."""

    level = serializers.ChoiceField([level.name.lower() for level in Level])
    id = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class
    uses = UseShape(many=True)


def limits_body(state: QuotaState) -> dict[str, Any]:
    budget = _text(state.budget)
    return {
        **{name: getattr(state, name) for name in COUNTS},
        **{name: budget if state.period == period else None for name, period in BUDGETS.items()},
        "soft_budget": _text(state.soft_budget),
        "spent": _text(state.spent),
        "held": _text(state.held),
    }


def tenant_limits_body(state: QuotaState) -> dict[str, Any]:
    more = {"postpaid_limit": _text(state.postpaid_limit), "owed": _text(state.owed)}
    return {**limits_body(state), **more, "tenant_weight": _text(state.tenant_weight)}


def _text(number: Decimal | None) -> str | None:
    return None if number is None else number_text(number)


def check_within(own: QuotaState, changes: LimitChanges) -> None:
    """A member, a key or an adapter cannot have more than its tenant: a limit that never binds is a mistake."""
    wanted: dict[str, Any] = dict(changes)
    for name in COUNTS:
        _check_at_most(name, wanted.get(name), getattr(own, name))
    if wanted.get("period", own.period) == own.period:
        name = next(name for name, period in BUDGETS.items() if period == own.period)
        _check_at_most(name, wanted.get("budget"), own.budget)


def _check_at_most(name: str, wanted: Decimal | int | None, limit: Decimal | int | None) -> None:
    if wanted is not None and limit is not None and wanted > limit:
        raise InvalidRequest(
            f"{name} is {number_text(wanted)}, but your account's own is {number_text(limit)}: set it to at most that.",
            param=name,
            code="above_account_limit",
        )
