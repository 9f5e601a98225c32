"""The end of a request, once for all who may bring it about: the door, or the journal when the door could not."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.services import PinnedPrice, amount_of, price_by_id, record_usage
from controlplane.quotas.services import settling
from engine.protocol import Usage
from tenants.sql import Plan

# The `tenant` of what the platform asks an engine on its own account (trials of adapters): nobody is charged for it.
# No tenant's id looks so.
PLATFORM = "platform"
# Of an account, what the hold does not know by itself.
_KEPT: Final = ("adapter_id", "adapter_version_id", "model", "base_model", "is_batch")


@dataclass(frozen=True)
class Account:
    """Whom a request is charged to and at what price: all that settling needs besides the usage."""

    tenant_id: str
    key_id: str
    adapter_id: str | None
    adapter_version_id: str | None
    model: str
    base_model: str
    price: PinnedPrice
    is_batch: bool = False

    def to_context(self) -> dict[str, Any]:
        """What is kept with the hold, so that the journal alone can settle it; `account_of_hold` reads it."""
        markup = self.price.markup
        kept = {name: getattr(self, name) for name in _KEPT}
        return {**kept, "price_id": self.price.id, "markup_id": markup.id if markup else None}

    def amount(self, usage: Usage) -> Decimal:
        return amount_of(
            self.price, prompt=usage.prompt_tokens, cached=usage.cached_tokens, completion=usage.completion_tokens
        )


@dataclass(frozen=True)
class Ended:
    """One ended request, as the engine reports it. engine_position: its journal line, where that is known. first_at:
    when its first token came, where that was seen."""

    request_id: str
    usage: Usage
    finish_reason: str
    started_at: datetime
    finished_at: datetime
    engine_position: int | None = None
    first_at: datetime | None = None

    def fact(self, account: Account) -> dict[str, Any]:
        """What an open Usage page is told."""
        return {
            "request_id": self.request_id,
            "model": account.model,
            "key_id": account.key_id,
            "prompt_tokens": self.usage.prompt_tokens,
            "cached_tokens": self.usage.cached_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "amount": str(account.amount(self.usage)),
            "finish_reason": self.finish_reason,
        }


def account_of_hold(tenant_id: str, key_id: str, context: dict[str, Any]) -> Plan[Account]:
    """Raises KeyError or TypeError for a context that the door did not write."""
    kept = dict(context)
    kind = {"adapter_id": kept["adapter_id"], "is_batch": kept.get("is_batch", False)}
    price = yield from price_by_id(kept.pop("price_id"), markup_id=kept.pop("markup_id", None), **kind)
    return Account(tenant_id=tenant_id, key_id=key_id, price=price, **kept)


def settle_request(account: Account, ended: Ended) -> Plan[bool]:
    """End the hold and record the usage, in one statement. Any number of calls have the effect of one.
    True when this call recorded the usage."""
    usage = ended.usage
    ending = settling(
        request_id=ended.request_id,
        amount=account.amount(usage),
        tokens=usage.prompt_tokens + usage.completion_tokens,
    )
    return (
        yield from record_usage(
            request_id=ended.request_id,
            tenant_id=account.tenant_id,
            key_id=account.key_id,
            adapter_id=account.adapter_id,
            adapter_version_id=account.adapter_version_id,
            model=account.model,
            base_model=account.base_model,
            price_id=account.price.id,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            device_ns=usage.device_ns,
            prefill_ns=usage.prefill_ns,
            energy_uj=usage.energy_uj,
            prefill_uj=usage.prefill_uj,
            finish_reason=ended.finish_reason,
            started_at=ended.started_at,
            finished_at=ended.finished_at,
            first_at=ended.first_at,
            engine_position=ended.engine_position,
            is_batch=account.is_batch,
            price=account.price,
            ending=ending,
        )
    )


def total_of(ends: list[tuple[Account, Usage]]) -> tuple[Usage, Decimal]:
    """What the prompts of one call used and cost together."""
    usages = [usage for _, usage in ends]
    total = Usage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        sum(usage.device_ns for usage in usages),
        sum(usage.prefill_ns for usage in usages),
    )
    return total, sum((account.amount(usage) for account, usage in ends), Decimal(0))
