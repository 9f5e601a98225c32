"""What billing asks of a payment provider, and what it hears from one. `stripe_provider` is the one there is."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from django.conf import settings

from controlplane.currency import currency


class ProviderAway(Exception):
    """The provider cannot be reached or did not take the order; the message holds no secret."""


class Forged(Exception):
    """A notice that its sender did not sign, or not lately."""


@dataclass(frozen=True)
class Order:
    """What the payer is asked for. description: what the page names it."""

    payment_id: str
    amount: Decimal
    currency: str
    description: str
    success_url: str
    cancel_url: str


@dataclass(frozen=True)
class Page:
    """Where the payer pays."""

    session_id: str
    url: str


@dataclass(frozen=True)
class Paid:
    """payment_id: ours, as the order named it; None: it is nothing of ours."""

    payment_id: str | None
    session_id: str
    intent_id: str | None
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class NotPaid:
    """The page was left, or the money did not come."""

    payment_id: str | None


@dataclass(frozen=True)
class Back:
    """So much in all is with the payer again because of this refund or dispute."""

    ref: str
    intent_id: str
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Notice:
    """fact: None where it changes nothing of ours. at: when the provider wrote it."""

    id: str
    kind: str
    at: datetime
    fact: Paid | NotPaid | Back | None


def payment_currency() -> str:
    """The installation's, as payments name it."""
    return currency().lower()


class PaymentProvider(Protocol):
    name: Literal["stripe"]

    def open_page(self, order: Order) -> Page:
        """The same payment id again is the same page. Raises ProviderAway."""

    def read_notice(self, body: bytes, signature: str) -> Notice:
        """Raises Forged."""


def configured_provider() -> PaymentProvider | None:
    """None: nobody can pay here. A key alone is not enough: what nobody signs must not be believed."""
    if not settings.STRIPE_KEY or not settings.STRIPE_WEBHOOK_SECRET.strip():
        return None
    from controlplane.billing.stripe_provider import StripeProvider  # slow to import, and needed with a key only

    return StripeProvider(settings.STRIPE_KEY, settings.STRIPE_WEBHOOK_SECRET, settings.STRIPE_API_URL)
