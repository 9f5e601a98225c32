"""Stripe, through its own library: Checkout pages out, signed events in."""

import logging
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Literal

import stripe

from controlplane.billing.payment_provider import Back, Forged, Notice, NotPaid, Order, Page, Paid, ProviderAway

log = logging.getLogger(__name__)
# A signature older than this is a replay (seconds).
TOLERANCE: Final = 300
RETRIES: Final = 2
SECONDS: Final = 10
_PAID: Final = ("checkout.session.completed", "checkout.session.async_payment_succeeded")
_NOT_PAID: Final = ("checkout.session.expired", "checkout.session.async_payment_failed")
_REFUNDS: Final = ("refund.created", "refund.updated", "refund.failed")
_DISPUTES: Final = ("charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated")
EVENTS: Final = (*_PAID, *_NOT_PAID, *_REFUNDS, *_DISPUTES)
_CAME_TO_NOTHING: Final = ("failed", "canceled")


class StripeProvider:
    name: Literal["stripe"] = "stripe"

    def __init__(self, key: str, webhook_secret: str, api_url: str) -> None:
        self._secret = webhook_secret
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": api_url},
            max_network_retries=RETRIES,
            http_client=stripe.RequestsClient(timeout=SECONDS),
        )

    def open_page(self, order: Order) -> Page:
        try:
            session = self._client.v1.checkout.sessions.create(
                params={
                    "mode": "payment",
                    "client_reference_id": order.payment_id,
                    "line_items": [
                        {
                            "quantity": 1,
                            "price_data": {
                                "currency": order.currency,
                                "unit_amount": _cents(order.amount),
                                "product_data": {"name": order.description},
                            },
                        }
                    ],
                    "success_url": order.success_url,
                    "cancel_url": order.cancel_url,
                },
                options={"idempotency_key": order.payment_id},
            )
        except stripe.StripeError as error:
            # Its text may quote what was sent; the type and the code say enough.
            log.warning("stripe refused payment %s: %s %s", order.payment_id, type(error).__name__, error.code)
            raise ProviderAway("The payment provider did not open a payment page: try again later.") from None
        assert session.url is not None, "a session in mode `payment` has a page"
        return Page(session.id, session.url)

    def read_notice(self, body: bytes, signature: str) -> Notice:
        try:
            event = self._client.construct_event(body, signature, self._secret, TOLERANCE)
            found = event.to_dict()
            told: dict[str, Any] = found["data"]["object"]
            at = datetime.fromtimestamp(found["created"], UTC)
            return Notice(found["id"], found["type"], at, _fact(found["type"], told))
        except (stripe.SignatureVerificationError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Forged(type(error).__name__) from None


def _fact(kind: str, told: dict[str, Any]) -> Paid | NotPaid | Back | None:
    if kind in _PAID and told["payment_status"] == "paid":
        return Paid(
            told["client_reference_id"], told["id"], told["payment_intent"], _money(told["amount_total"]),
            told["currency"],
        )  # fmt: skip
    if kind in _NOT_PAID:
        return NotPaid(told["client_reference_id"])
    if kind in _REFUNDS and told["payment_intent"]:
        is_back = told["status"] not in _CAME_TO_NOTHING
        return Back(told["id"], told["payment_intent"], _money(told["amount"] if is_back else 0), told["currency"])
    if kind in _DISPUTES and told["payment_intent"]:
        is_back = kind == "charge.dispute.funds_withdrawn"
        return Back(told["id"], told["payment_intent"], _money(told["amount"] if is_back else 0), told["currency"])
    return None


def _cents(money: Decimal) -> int:
    return int(money.scaleb(2))


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)
