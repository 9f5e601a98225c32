"""Money beside the tokens: price plans, terms, credit, finished months closed and partly paid, limits at the end."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Final

from django.conf import settings
from django.db import transaction

from controlplane.billing.agreements import agree
from controlplane.billing.grants import grant_credit
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.invoices import invoices_of
from controlplane.billing.models import EntryKind, GrantKind, Invoice
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.profiles import ProfileChanges, calendar_of, change_profile, profile_of
from controlplane.billing.statements import close_period
from controlplane.billing.terms import Terms, Tier
from controlplane.embedded.month.adapters import adapter_named
from controlplane.embedded.month.clock import made_at
from controlplane.embedded.month.people import House
from controlplane.quotas.limits import LimitChanges, set_limits
from tenants.models import Tenant, User
from tenants.scope import tenant_scope

_SYSTEM: Final = "system"
_STEP: Final = Decimal("0.05")
# By what a budget is larger than what is used of it: Northwind's is nearly used up.
_ROOM: Final = {"northwind": Decimal("1.18")}
_TIERS: Final = (Tier(Decimal(20), Decimal(5)), Tier(Decimal(40), Decimal(10)))
TERMS: Final = {
    "northwind": Terms(included_tokens=500_000, tiers=_TIERS),
    "lexicon": Terms(minimum_fee=Decimal(25)),
    "pixelpost": Terms(tier_mode="volume", tiers=_TIERS),
}
_TAXES: Final = {"northwind": ("VAT", "20"), "lexicon": ("VAT", "21"), "pixelpost": ("USt.", "19")}
_RATE_LIMITS: Final = LimitChanges(requests_per_minute=600, tokens_per_minute=400_000, concurrency=24)


def set_terms(house: House, *, operator: User, base_model: str, at: datetime) -> None:
    company, tenant = house.company, house.tenant
    full, cached, output, surcharge = map(Decimal, company.rates)
    rates = Rates(input=full, cached_input=cached, output=output, adapter_surcharge=surcharge, batch_discount=40)
    tax_name, tax_rate = _TAXES.get(company.slug, ("", "0"))
    changes = ProfileChanges(
        name=f"{company.name} Ltd", address=company.address, time_zone=company.zone, tax_name=tax_name,
        tax_rate=Decimal(tax_rate), payment_days=30,
    )  # fmt: skip
    with made_at(at):
        set_price(base_model=base_model, rates=rates, actor=operator.id, tenant=tenant)
        if terms := TERMS.get(company.slug):
            agree(tenant=tenant, terms=terms, actor=operator.id)
        change_profile(tenant=tenant, changes=changes, actor=operator.id)
        _give_credit(house, operator, at)


def _give_credit(house: House, operator: User, at: datetime) -> None:
    slug = house.company.slug
    if slug == "lexicon":
        grant_credit(
            tenant=house.tenant, amount=Decimal(10), kind=GrantKind.PROMO, reference="welcome", actor=operator.id,
            expires_at=at + timedelta(days=90),
        )  # fmt: skip
    if slug == "harbor":
        grant_credit(
            tenant=house.tenant, amount=Decimal(60), kind=GrantKind.PAID, reference="bank transfer 2214",
            actor=operator.id,
        )  # fmt: skip


def close_finished_periods(house: House, *, start: datetime, now: datetime) -> None:
    """Each at the time at which it would have closed by itself. From here on the tenant has been there since `start`,
    or since its own midnight of that day."""
    tenant = house.tenant
    calendar, delay = calendar_of(profile_of(tenant)), timedelta(seconds=settings.CLOSE_DELAY_SECONDS)
    first = calendar.start(calendar.number(start + timedelta(hours=14)))
    since = first if abs(first - start) < timedelta(days=1) else start
    with transaction.atomic():
        Tenant.objects.filter(id=tenant.id).update(created_at=since)
        tenant.refresh_from_db()
        for end in calendar.ends_between(since, now - delay):
            with made_at(end + delay):
                close_period(tenant=tenant, until=end, actor=_SYSTEM)


def pay(house: House, *, operator: User, at: datetime) -> None:
    """Northwind has paid all of its first invoice, Pixel Post a half, and was credited something."""
    with tenant_scope(house.tenant.id):
        invoice: Invoice | None = invoices_of(house.tenant).order_by("number").first()
    if invoice is None or not invoice.total:
        return
    total, entries = invoice.total, {}
    if house.company.slug == "northwind":
        entries = {EntryKind.PAYMENT: (total, "bank transfer")}
    if house.company.slug == "pixelpost":
        part = (total / 2).quantize(Decimal("0.01"))
        note = min(total - part, Decimal(2))
        entries = {
            EntryKind.PAYMENT: (part, "bank transfer, first half"),
            EntryKind.CREDIT_NOTE: (note, "slow answers on the day of the outage"),
        }
    with made_at(at):
        for kind, (amount, reason) in entries.items():
            book_entry(
                tenant=house.tenant, invoice_id=invoice.id, kind=kind, amount=amount, reason=reason, actor=operator.id
            )


def set_final_limits(house: House, *, operator: User, spent: Mapping[str, Decimal], now: datetime) -> None:
    """Last, so that they do not slow the telling down; what is used of them is counted from the holds.

    spent: money of this month by key, and under the empty text of the whole tenant. The first key's budget is nearly
    used up.
    """
    tenant, company = house.tenant, house.company
    with made_at(now - timedelta(days=3)):
        budget = _round_up(spent.get("", Decimal(0)) * _ROOM.get(company.slug, Decimal("1.6")))
        set_limits(
            tenant=tenant, changes=_RATE_LIMITS | LimitChanges(budget=budget, soft_budget=budget * Decimal("0.8")),
            actor=operator.id,
        )  # fmt: skip
        first = company.keys[0]
        key_budget = _round_up(spent.get(first.name, Decimal(0)) / Decimal("0.87"))
        set_limits(
            tenant=tenant, key_id=house.keys[first.name].id, actor=house.owner.id,
            changes=LimitChanges(budget=key_budget, requests_per_minute=120),
        )  # fmt: skip
        set_limits(
            tenant=tenant, member_id=house.people[first.person].id, actor=house.owner.id,
            changes=LimitChanges(budget=budget, tokens_per_day=2_000_000),
        )  # fmt: skip
        set_limits(
            tenant=tenant, adapter_id=adapter_named(house, company.uploads[0].adapter).id, actor=house.owner.id,
            changes=LimitChanges(tokens_per_month=60_000_000, concurrency=12),
        )  # fmt: skip


def _round_up(money: Decimal) -> Decimal:
    """To five cents, and never to nothing."""
    return max(_STEP, (money / _STEP).to_integral_value(ROUND_CEILING) * _STEP)
