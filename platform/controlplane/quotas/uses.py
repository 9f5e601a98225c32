"""How much of each limit is used, reserved and left, and which one binds: for people to look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from controlplane.quotas.models import Period
from controlplane.quotas.queries import QuotaState
from controlplane.quotas.rates import Meter, number_text

_KINDS = {
    "requests": ("requests_per_minute", "requests"),
    "tokens": ("tokens_per_minute", "tokens"),
    "tokens-day": ("tokens_per_day", "tokens"),
    "tokens-month": ("tokens_per_month", "tokens"),
    "concurrency": ("concurrency", "requests"),
    "budget": ("budget", "money"),
}
# What does not come back by itself within a minute or with the end of a request.
LASTING: Final = (
    "tokens_per_day", "tokens_per_month", "monthly_budget", "total_budget", "soft_budget", "postpaid_limit", "credit",
)  # fmt: skip


@dataclass(frozen=True)
class Use:
    """One limit of one level. used: without `reserved`. resets_in: whole seconds, rounded up."""

    kind: str
    unit: str
    limit: Decimal
    used: Decimal
    reserved: Decimal
    resets_in: int | None = None

    @property
    def left(self) -> Decimal:
        return max(Decimal(0), self.limit - self.used - self.reserved)

    @property
    def share_left(self) -> Decimal:
        return self.left / self.limit if self.limit else Decimal(0)

    @property
    def refuses(self) -> bool:
        return self.kind != "soft_budget"

    def is_near(self, share: Decimal) -> bool:
        """Whether somebody should look at it: `share` of a limit that lasts is used or reserved, or a soft budget,
        which is a warning itself, is reached."""
        if self.kind not in LASTING or (self.kind == "postpaid_limit" and not self.limit):
            return False
        return self.used + self.reserved >= self.limit * (share if self.refuses else 1)

    def body(self) -> dict[str, Any]:
        numbers = {name: number_text(getattr(self, name)) for name in ("limit", "used", "reserved", "left")}
        return {"kind": self.kind, "unit": self.unit, **numbers, "resets_in": self.resets_in}


def uses_of(state: QuotaState) -> Iterator[Use]:
    """In the order of the form that sets them."""
    for meter in state.limits.meters:
        yield _use(meter, state)
    if state.soft_budget is not None:
        yield Use("soft_budget", "money", state.soft_budget, state.spent, state.held)
    if state.postpaid_limit is not None:
        owed, with_held = max(Decimal(0), state.owed), max(Decimal(0), state.owed + state.held)
        # What is held takes credit before anything is owed for it.
        yield Use("postpaid_limit", "money", state.postpaid_limit, owed, with_held - owed)


def _use(meter: Meter, state: QuotaState) -> Use:
    kind, unit = _KINDS[meter.name]
    if kind == "budget":
        kind = "monthly_budget" if state.period == Period.MONTH else "total_budget"
    reserved: dict[str, Decimal | int] = {
        "tokens_per_day": state.day_reserved, "tokens_per_month": state.month_reserved,
        "concurrency": state.running, "monthly_budget": state.held, "total_budget": state.held,
    }  # fmt: skip
    used: dict[str, Decimal | int] = {
        "tokens_per_day": state.day_tokens, "tokens_per_month": state.month_tokens, "concurrency": state.running,
        "monthly_budget": state.spent + state.held, "total_budget": state.spent + state.held,
    }  # fmt: skip
    running, all_in_all = reserved.get(kind, 0), used.get(kind, meter.limit - meter.remaining)
    resets = None if meter.reset is None else int(meter.reset.to_integral_value(ROUND_CEILING))
    return Use(kind, unit, Decimal(meter.limit), Decimal(all_in_all - running), Decimal(running), resets)


def credit_use(state: QuotaState, given: Decimal) -> Use:
    """Of a tenant's credit. given: by all grants that still have something, with what is gone of them."""
    nothing = Decimal(0)
    left = min(given, max(nothing, -state.owed - state.held))
    return Use("credit", "money", given, max(nothing, given - state.held - left), state.held)


def binding(uses: list[Use]) -> Use | None:
    """The limit that will refuse first, as things stand: the one with the smallest share left. None where nothing has
    been used of any."""
    refusing = [use for use in uses if use.refuses and use.left < use.limit]
    return min(refusing, key=lambda use: use.share_left, default=None)
