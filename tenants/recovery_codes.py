"""Codes on paper, for whoever has lost their second factor: ten, each good once, kept as digests."""

import secrets
from typing import Final

from django.db import transaction
from django.utils import timezone

from tenants.credentials import RecoveryCode
from tenants.keys import digest_of, newest_pepper
from tenants.models import User

COUNT: Final = 10
_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # none that people take for another
_LENGTH: Final = 12  # 59 bits


@transaction.atomic
def new_recovery_codes(user: User) -> list[str]:
    """`abcd-efgh-jkmn`, shown once. Those before are good no more."""
    version = newest_pepper()
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH)) for _ in range(COUNT)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, digest=_digest(code, version), pepper_version=version) for code in codes
    )
    return ["-".join(code[at : at + 4] for at in range(0, _LENGTH, 4)) for code in codes]


def take_recovery_code(user: User, typed: str) -> bool:
    """Whether it is one of theirs that has not been used; now it has."""
    code = "".join(typed.lower().replace("-", " ").split())
    rows = RecoveryCode.objects.filter(user=user, used_at=None)
    for version in rows.values_list("pepper_version", flat=True).distinct():
        # One statement: of two that bring the same code at once, one is let in.
        if rows.filter(pepper_version=version, digest=_digest(code, version)).update(used_at=timezone.now()):
            return True
    return False


def codes_left(user: User) -> int:
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def _digest(code: str, version: int) -> str:
    """Not the digest that an API key of the same text would have. Of a retired pepper: one that matches nothing."""
    return digest_of(f"recovery code {code}", version) or ""
