"""Prices as operators set them: dated, one after the other, never changed once they have priced something."""

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection, models, transaction

from controlplane.billing.models import Price
from controlplane.billing.pricing import MAX_PRICE, PRICE_DECIMALS
from controlplane.currency import amount_text, cents_text
from controlplane.errors import Conflict, InvalidRequest
from tenants.audit import record_audit
from tenants.models import Tenant

_PRICE_LOCK = 0x50524943  # one price is set at a time, so that periods line up


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Per million tokens; adapter_surcharge comes on top of each where an adapter runs. batch_discount: whole
    percent."""

    input: Decimal
    cached_input: Decimal
    output: Decimal
    adapter_surcharge: Decimal = Decimal(0)
    batch_discount: int = 0

    def amounts(self) -> dict[str, Decimal]:
        return {name: value for name, value in asdict(self).items() if name != "batch_discount"}


def check_rates(rates: Rates) -> None:
    """Raises InvalidRequest, naming the field, its value and the remedy."""
    for name, value in rates.amounts().items():
        if not value.is_finite() or value < 0:
            raise InvalidRequest(f"{name} is {value}: a price is 0 or more, per million tokens", param=name)
        if value > MAX_PRICE:
            raise InvalidRequest(
                f"{name} is {value}: more than {amount_text(MAX_PRICE)} per million tokens is taken for a mistyped "
                f"unit. {cents_text(Decimal('2.5'))} per million tokens is written 2.5.",
                param=name,
            )
        if value != round(value, PRICE_DECIMALS):
            raise InvalidRequest(f"{name} is {value}: use at most {PRICE_DECIMALS} decimals", param=name)
    if not 0 <= rates.batch_discount <= 100:
        raise InvalidRequest(
            f"batch_discount is {rates.batch_discount}: it is a percentage from 0 to 100", param="batch_discount"
        )
    if rates.cached_input > rates.input:
        raise InvalidRequest(
            f"cached_input is {rates.cached_input}, above input ({rates.input}): make it at most that",
            param="cached_input",
        )


@transaction.atomic
def set_price(
    *,
    base_model: str,
    rates: Rates,
    actor: str,
    tenant: Tenant | None = None,
    adapter_id: str | None = None,
    effective_from: datetime | None = None,
) -> Price:
    """A price from `effective_from` (now, unless told) until the next one of the same scope. Ends the one before it.

    Raises InvalidRequest for a start in the past: what has been priced stays priced. Conflict where another price of
    the scope starts at that very instant.
    """
    check_rates(rates)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s), now()", [_PRICE_LOCK])
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[1]
    start = effective_from or now
    if start < now:
        raise InvalidRequest(
            f"effective_from is {start.isoformat()}, in the past: leave it out to start now", param="effective_from"
        )
    scope = Price.objects.filter(base_model=base_model, tenant=tenant, adapter_id=adapter_id)
    if scope.filter(effective_from=start).exists():
        raise Conflict(f"Another price of this scope starts at {start.isoformat()}: choose another instant.")
    scope.filter(effective_from__lt=start).filter(
        models.Q(effective_to=None) | models.Q(effective_to__gt=start)
    ).update(effective_to=start)
    following = scope.filter(effective_from__gt=start).order_by("effective_from").first()
    price = Price.objects.create(
        base_model=base_model, tenant=tenant, adapter_id=adapter_id, **asdict(rates), effective_from=start,
        effective_to=following.effective_from if following else None, created_by=actor,
    )  # fmt: skip
    details = {"base_model": base_model, "adapter_id": adapter_id, **{k: str(v) for k, v in asdict(rates).items()}}
    record_audit(tenant=tenant, actor=actor, action="price.set", target=price.id, details=details)
    return price


def prices_in_force(*, tenant: Tenant) -> models.QuerySet[Price]:
    """Every price of now that may apply to the tenant: those for all, and its own."""
    now = models.functions.Now()
    return Price.objects.filter(
        models.Q(tenant=None) | models.Q(tenant=tenant),
        models.Q(effective_to=None) | models.Q(effective_to__gt=now),
        effective_from__lte=now,
    )
