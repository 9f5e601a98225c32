"""Single generations: usage events as people look them up."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from django.db.models import Q, QuerySet

from controlplane.billing.costing import DevicePrice, money_text
from controlplane.billing.models import UsageEvent
from controlplane.billing.slices import Slice

# completed: ended by itself, or at its max_tokens. cancelled: the caller left. failed: everything else.
OUTCOMES: Final = ("completed", "cancelled", "failed")
_COMPLETED: Final = ("stop", "length")
_PIECE: Final = 500


def outcome_of(finish_reason: str) -> str:
    if finish_reason in _COMPLETED:
        return "completed"
    return "cancelled" if finish_reason == "cancelled" else "failed"


def events_of(wanted: Slice, outcome: str | None = None) -> QuerySet[UsageEvent]:
    """With the key and who issued it. Inside tenant_scope."""
    rows = UsageEvent.objects.filter(wanted.condition()).select_related("key__created_by")
    completed, cancelled = Q(finish_reason__in=_COMPLETED), Q(finish_reason="cancelled")
    match outcome:
        case "completed":
            return rows.filter(completed)
        case "cancelled":
            return rows.filter(cancelled)
        case "failed":
            return rows.exclude(completed | cancelled)
    return rows


def oldest_first(rows: QuerySet[UsageEvent]) -> Iterator[UsageEvent]:
    """In pieces, so that many are never in memory as a whole."""
    yield from rows.order_by("finished_at", "pk").iterator(chunk_size=_PIECE)


def event_body(event: UsageEvent, price: DevicePrice, *, sees_people: bool) -> dict[str, Any]:
    plain = ("model", "base_model", "adapter_id", "prompt_tokens", "cached_tokens", "completion_tokens")
    told = ("finish_reason", "started_at", "finished_at", "is_batch")
    hidden, issuer, first = event.key.hidden, event.key.created_by, event.first_at
    return {
        "id": event.request_id,
        **{name: getattr(event, name) for name in plain},
        "key_id": None if hidden else event.key_id,
        "key": "Playground" if hidden else event.key.name,
        "member": issuer.email if issuer and sees_people else None,
        "amount": money_text(event.amount),
        "cost": money_text(price.of(event.device_ns, event.energy_uj)),
        "device_seconds": money_text(Decimal(event.device_ns).scaleb(-9)),
        "outcome": outcome_of(event.finish_reason),
        **{name: getattr(event, name) for name in told},
        "seconds": round((event.finished_at - event.started_at).total_seconds(), 6),
        "first_token_ms": round((first - event.started_at).total_seconds() * 1000, 3) if first else None,
    }
