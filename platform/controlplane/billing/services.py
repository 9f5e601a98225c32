"""Prices looked up and usage booked, as plans (`tenants.sql`): the door and the journal's reader share them."""

import json
import logging
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.ledger import CREDITED, posted, posting
from controlplane.billing.pricing import PinnedMarkup, PinnedPrice, amount_of, markup_of
from controlplane.billing.rates import markup_in_force, price_in_force, rates
from controlplane.errors import Unavailable
from tenants.sql import Parts, Plan, Query, Row

__all__ = ["PinnedPrice", "amount_of", "open_discrepancy", "price_by_id", "price_for", "record_usage"]
log = logging.getLogger(__name__)

_RATES = rates(adapter="%(adapter)s::text", batch="%(batch)s::boolean")
_PINNED = f"price.id, {_RATES}, markup.id AS markup_id, markup.per_million AS markup, markup.earned"
_PRICE_FOR = f"""
SELECT {_PINNED} FROM billing_price price
{markup_in_force(adapter="%(adapter)s")}
{price_in_force(base_model="%(base_model)s", adapter="%(adapter)s")}
"""  # noqa: S608  # constants only
_PRICE_BY_ID = f"""
SELECT {_PINNED} FROM billing_price price LEFT JOIN billing_askedmarkup markup ON markup.id = %(markup)s::text
WHERE price.id = %(id)s
"""  # noqa: S608  # constants only
_RECORD = f"""event AS (
    INSERT INTO billing_usageevent (
        request_id, tenant_id, key_id, adapter_id, adapter_version_id, model, base_model, price_id, prompt_tokens,
        cached_tokens, completion_tokens, device_ns, prefill_ns, energy_uj, prefill_uj, amount, markup_id,
        markup_amount, earned_amount,
        finish_reason, started_at, first_at, finished_at, late, engine_position, is_batch)
    VALUES (%(request_id)s, %(tenant_id)s, %(key_id)s, %(adapter_id)s, %(adapter_version_id)s, %(model)s,
        %(base_model)s, %(price_id)s, %(prompt_tokens)s, %(cached_tokens)s, %(completion_tokens)s, %(device_ns)s,
        %(prefill_ns)s, %(energy_uj)s, %(prefill_uj)s, %(amount)s, %(markup_id)s, %(markup_amount)s,
        %(earned_amount)s, %(finish_reason)s,
        %(started_at)s, %(first_at)s, %(finished_at)s, %(late)s, %(engine_position)s, %(is_batch)s)
    ON CONFLICT (request_id) DO NOTHING RETURNING id
), {posting("EXISTS (SELECT FROM event)")} SELECT id FROM event
"""  # noqa: S608
_RECORD_ENDING = _RECORD.replace("%(late)s", "coalesce((SELECT late FROM settled), false)")
# What two deliveries of one event must agree on. Clocks and reasons may differ between the door and the journal.
_IDENTITY: Final = (
    "tenant_id", "key_id", "adapter_version_id", "price_id", "prompt_tokens", "cached_tokens", "completion_tokens",
    "device_ns", "prefill_ns", "energy_uj", "prefill_uj", "is_batch", "markup_id",
)  # fmt: skip
_FIND_EVENT = f"SELECT {', '.join(_IDENTITY)} FROM billing_usageevent WHERE request_id = %(request_id)s"  # noqa: S608
_OPEN_DISCREPANCY = """
INSERT INTO billing_discrepancy (kind, request_id, details) VALUES (%(kind)s, %(request_id)s, %(details)s::jsonb)
ON CONFLICT (kind, request_id) WHERE resolved_at IS NULL DO NOTHING RETURNING id
"""


def price_for(*, tenant_id: str, base_model: str, adapter_id: str | None, is_batch: bool = False) -> Plan[PinnedPrice]:
    """The most specific price in force now, by the database's clock: adapter and tenant, adapter, tenant, base model.
    With an adapter's surcharge and a batch's discount in its rates, and what the adapter's owner asks on top.

    Raises Unavailable (code `price_missing`): what has no price is not served.
    """
    named = {"base_model": base_model, "tenant": tenant_id, "adapter": adapter_id, "batch": is_batch}
    rows = yield Query(_PRICE_FOR, named)
    if not rows:
        raise Unavailable(
            f"{base_model} has no price in force, and nothing is served without one: an operator has to set it.",
            code="price_missing",
        )
    return _price(rows[0])


def price_by_id(
    price_id: str, *, adapter_id: str | None = None, is_batch: bool = False, markup_id: str | None = None
) -> Plan[PinnedPrice]:
    """A price that was pinned before, for the same kind of request. KeyError for an id that never was one: prices are
    never deleted."""
    named = {"id": price_id, "adapter": adapter_id, "batch": is_batch, "markup": markup_id}
    rows = yield Query(_PRICE_BY_ID, named)
    if not rows:
        raise KeyError(price_id)
    return _price(rows[0])


def _price(row: Row) -> PinnedPrice:
    markup = PinnedMarkup(row["markup_id"], row["markup"], row["earned"]) if row["markup_id"] else None
    return PinnedPrice(row["id"], row["input"], row["cached_input"], row["output"], markup)


def record_usage(
    *,
    request_id: str,
    tenant_id: str,
    key_id: str,
    adapter_id: str | None,
    adapter_version_id: str | None,
    model: str,
    base_model: str,
    price_id: str,
    prompt_tokens: int,
    cached_tokens: int,
    completion_tokens: int,
    device_ns: int,
    finish_reason: str,
    started_at: datetime,
    finished_at: datetime,
    first_at: datetime | None = None,
    prefill_ns: int = 0,
    energy_uj: int | None = None,
    prefill_uj: int | None = None,
    markup_id: str | None = None,
    engine_position: int | None = None,
    late: bool = False,
    is_batch: bool = False,
    price: PinnedPrice | None = None,
    ending: Parts | None = None,
) -> Plan[bool]:
    """Book one request: its usage event and its ledger transaction, together. True if this call booked it.

    price: that of `price_id` and `markup_id`, where it is at hand. ending: what ends the request's hold, to be done in
    the same statement, whether or not this call books; its part `settled(late)` says whether that was late.

    False where the request id is booked already. The same usage again is a success without effect; other usage under
    that id leaves the books as they are and opens a discrepancy (kind `usage_conflict`).
    """
    event: dict[str, Any] = dict(locals())
    del event["price"], event["ending"]
    price = price or (yield from price_by_id(price_id, adapter_id=adapter_id, is_batch=is_batch, markup_id=markup_id))
    amount = amount_of(price, prompt=prompt_tokens, cached=cached_tokens, completion=completion_tokens)
    asked, earned = markup_of(price, tokens=prompt_tokens + completion_tokens)
    event["markup_id"] = price.markup.id if price.markup else None
    event |= {"amount": amount, "markup_amount": asked, "earned_amount": earned} | posted(
        transaction_id=f"usage:{request_id}", tenant_id=tenant_id, kind="usage", entries=_entries(amount, earned)
    )
    if ending:
        booked = yield Query(f"WITH {ending.sql}, {_RECORD_ENDING}", ending.params | event)
    else:
        booked = yield Query(f"WITH {_RECORD}", event)
    if not booked:
        yield from _compare(event)
    return bool(booked)


def _entries(amount: Decimal, earned: Decimal) -> dict[str, Decimal]:
    """What the owner of a shared adapter earned is owed to it, and not the platform's revenue."""
    owed = {"royalties": CREDITED * earned} if earned else {}
    return {"receivable": amount, "revenue": CREDITED * (amount - earned), **owed}


def _compare(event: dict[str, Any]) -> Plan[None]:
    [booked] = yield Query(_FIND_EVENT, event)
    differing = {name: [booked[name], event[name]] for name in _IDENTITY if booked[name] != event[name]}
    if differing:
        yield from open_discrepancy(kind="usage_conflict", request_id=event["request_id"], details=differing)


def open_discrepancy(*, kind: str, request_id: str, details: dict[str, Any]) -> Plan[bool]:
    """Say that two records disagree. True if this call opened it; it stays open until an operator resolves it."""
    rows = yield Query(_OPEN_DISCREPANCY, {"kind": kind, "request_id": request_id, "details": json.dumps(details)})
    if rows:
        log.error("books: %s for %s: %s", kind, request_id, details)
    return bool(rows)
