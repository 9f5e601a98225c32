"""Six digits that change every half minute (RFC 6238). A code is taken once, and none that is older than the last."""

import hmac
import time
from typing import Final

import pyotp
from django.utils import timezone

from tenants.credentials import Totp
from tenants.members import Refused
from tenants.models import User
from tenants.sealing import seal, unseal

STEP_SECONDS: Final = 30
DRIFT: Final = 1  # steps that a clock may be off, either way
ISSUER: Final = "Veneer"


def start_totp(user: User) -> str:
    """A new secret in base32, of no use before `confirm_totp`. Raises Refused where one is in use."""
    if Totp.objects.filter(user=user).exclude(confirmed_at=None).exists():
        raise Refused("totp_in_use", "Codes are on already: turn them off first, then set up another app.")
    secret = pyotp.random_base32()
    Totp.objects.update_or_create(user=user, defaults={"sealed_secret": seal(secret), "last_step": 0})
    return secret


def totp_uri(user: User, secret: str) -> str:
    """`otpauth://`, which apps read from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=user.email, issuer_name=ISSUER)


def confirm_totp(user: User, code: str) -> bool:
    """Whether the app shows what it should; then it is in use."""
    return _take(user, code, is_confirmed=False)


def take_totp(user: User, code: str) -> bool:
    """Whether the code is right now. It is not right a second time."""
    return _take(user, code, is_confirmed=True)


def _take(user: User, code: str, *, is_confirmed: bool) -> bool:
    rows = Totp.objects.filter(user=user, confirmed_at__isnull=not is_confirmed)
    row = rows.first()
    secret = unseal(row.sealed_secret) if row else None
    step = matching_step(secret, code) if secret else None
    if row is None or step is None:
        return False
    # The row decides between two that bring the same code at once, and against a secret replaced meanwhile.
    fresh = rows.filter(last_step__lt=step, sealed_secret=row.sealed_secret)
    return bool(fresh.update(last_step=step, **({} if is_confirmed else {"confirmed_at": timezone.now()})))


def matching_step(secret: str, code: str) -> int | None:
    """The newest time step around now whose code this is."""
    now = int(time.time()) // STEP_SECONDS
    generator = pyotp.TOTP(secret, interval=STEP_SECONDS)
    steps = range(now + DRIFT, now - DRIFT - 1, -1)
    return next((s for s in steps if hmac.compare_digest(generator.generate_otp(s), code)), None)
