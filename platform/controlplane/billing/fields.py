"""Column types of money."""

from typing import Any, Final

from django.db import models

CENT_DECIMALS: Final = 2


def money(**more: Any) -> "models.DecimalField[Any, Any]":
    """Money. 12 decimals hold every amount exactly: prices have 6, and are per million tokens."""
    return models.DecimalField(max_digits=30, decimal_places=12, **more)


def cents(**more: Any) -> "models.DecimalField[Any, Any]":
    """Money as it is invoiced and paid: whole cents."""
    return models.DecimalField(max_digits=18, decimal_places=CENT_DECIMALS, **more)


def per_million(**more: Any) -> "models.DecimalField[Any, Any]":
    """Amounts per million tokens."""
    return models.DecimalField(max_digits=20, decimal_places=6, **more)
