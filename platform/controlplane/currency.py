"""The installation's currency. Every amount is in it: each tenant has this one."""

from decimal import Decimal
from typing import Final

from django.conf import settings

from controlplane.env import BadSetting

VARIABLE: Final = "VENEER_CURRENCY"
# By ISO 4217, those whose smaller unit is a hundredth, as amounts are invoiced, and that Stripe takes; with what is
# little money in each: about a dollar's worth, and above the least that Stripe takes.
LITTLE: Final = {
    "AED": 4, "AUD": 1, "BRL": 5, "CAD": 1, "CHF": 1, "CNY": 7, "CZK": 30, "DKK": 7, "EUR": 1, "GBP": 1, "HKD": 8,
    "HUF": 400, "ILS": 4, "INR": 80, "MXN": 20, "MYR": 4, "NOK": 10, "NZD": 1, "PLN": 4, "RON": 4, "SAR": 4, "SEK": 10,
    "SGD": 1, "THB": 30, "TRY": 40, "TWD": 30, "USD": 1, "ZAR": 15,
}  # fmt: skip


def checked_currency(code: str) -> str:
    """The code. Raises BadSetting for one that amounts cannot be invoiced and paid in."""
    if code not in LITTLE:
        raise BadSetting(
            f"{VARIABLE}={code!r} cannot be billed in: set it to the ISO 4217 code of a currency that is paid by card "
            f"and has hundredths, one of {', '.join(LITTLE)}; unset it to use USD"
        )
    return code


def currency() -> str:
    """Its ISO 4217 code."""
    return str(settings.CURRENCY)


def little_money() -> Decimal:
    """Less is not worth a card payment, or waking anybody."""
    return Decimal(LITTLE[currency()])


def exact_text(number: Decimal) -> str:
    """Every digit, without idle zeros, an exponent, or a minus before zero."""
    return f"{number.normalize() + 0:f}"


def amount_text(amount: Decimal) -> str:
    """For people: "0.0125 EUR", exact."""
    return f"{exact_text(amount)} {currency()}"


def cents_text(amount: Decimal) -> str:
    """For people: "12.50 EUR", of what is paid and invoiced."""
    return f"{amount:.2f} {currency()}"
