"""Terms as operators set them: dated, never changed, and put on a statement as lines of their own."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.billing.models import Agreement, LineKind, StatementLine
from controlplane.billing.rounding import NOTHING
from controlplane.billing.terms import Mode, Terms, Tier, Used, allowance, fee_to_minimum, tier_discount
from controlplane.currency import amount_text, cents_text
from controlplane.errors import InvalidRequest
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import tenant_scope

MAX_TIERS = 20


@transaction.atomic
def agree(*, tenant: Tenant, terms: Terms, actor: str, effective_from: datetime | None = None) -> Agreement:
    """Terms from `effective_from` (now, unless told) until the next ones. A statement goes by those in force at its
    period's last instant. Raises InvalidRequest for a start in the past or tiers that do not ascend."""
    _check_tiers(terms.tiers)
    now = timezone.now()
    start = effective_from or now
    if start < now:
        raise InvalidRequest(
            f"effective_from is {start.isoformat()}, in the past: leave it out to start now", param="effective_from"
        )
    tiers = [{"at_least": f"{tier.at_least:f}", "discount": f"{tier.discount:f}"} for tier in terms.tiers]
    with tenant_scope(tenant.id):
        agreement = Agreement.objects.create(
            tenant=tenant, minimum_fee=terms.minimum_fee, included_tokens=terms.included_tokens,
            tier_mode=terms.tier_mode, tiers=tiers, effective_from=start, created_by=actor,
        )  # fmt: skip
    details: dict[str, Any] = {
        "minimum_fee": f"{terms.minimum_fee:f}", "included_tokens": terms.included_tokens,
        "tier_mode": terms.tier_mode, "tiers": tiers,
    }  # fmt: skip
    record_audit(tenant=tenant, actor=actor, action="agreement.set", target=agreement.id, details=details)
    return agreement


def _check_tiers(tiers: tuple[Tier, ...]) -> None:
    if len(tiers) > MAX_TIERS:
        raise InvalidRequest(f"tiers has {len(tiers)} entries: use at most {MAX_TIERS}", param="tiers")
    for tier, following in pairwise(tiers):
        if following.at_least <= tier.at_least or following.discount < tier.discount:
            raise InvalidRequest(
                f"tiers: {following.at_least:f} at {following.discount:f} % follows {tier.at_least:f} at "
                f"{tier.discount:f} %: let both ascend",
                param="tiers",
            )


def agreement_before(*, tenant: Tenant, end: datetime) -> Agreement | None:
    """The one in force just before an instant. Within a `tenant_scope`."""
    found = Agreement.objects.filter(tenant=tenant, effective_from__lt=end)
    return found.order_by("-effective_from", "-created_at", "-id").first()


def terms_of(agreement: Agreement | None) -> Terms:
    if agreement is None:
        return Terms()
    tiers = tuple(Tier(Decimal(tier["at_least"]), Decimal(tier["discount"])) for tier in agreement.tiers)
    mode: Mode = "volume" if agreement.tier_mode == "volume" else "graduated"
    return Terms(agreement.minimum_fee, agreement.included_tokens, mode, tiers)


@dataclass(frozen=True)
class Adjustment:
    """Added to a statement, below zero for what is taken off."""

    kind: LineKind
    label: str
    amount: Decimal

    def line(self, statement_id: str) -> StatementLine:
        counts = dict.fromkeys(("requests", "prompt_tokens", "cached_tokens", "completion_tokens"), 0)
        return StatementLine(
            statement_id=statement_id, kind=self.kind, label=self.label, amount=self.amount, **counts
        )  # fmt: skip


def adjustments(terms: Terms, total: Decimal, used: Iterable[Used]) -> list[Adjustment]:
    """In the order in which they apply: allowance, tiers, minimum fee. Those of nothing are left out."""
    off = allowance(used, terms.included_tokens)
    less = tier_discount(total - off, terms.tiers, terms.tier_mode)
    fee = fee_to_minimum(total - off - less, terms.minimum_fee)
    found = [
        Adjustment(LineKind.ALLOWANCE, f"Included: {terms.included_tokens:,} tokens", -off),
        Adjustment(LineKind.TIERS, f"Discount on {amount_text(total - off)} of usage ({terms.tier_mode})", -less),
        Adjustment(LineKind.MINIMUM, f"Up to the minimum fee of {cents_text(terms.minimum_fee)}", fee),
    ]
    return [each for each in found if each.amount != NOTHING]
