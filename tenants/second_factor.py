"""What a person proves themselves with besides the password: an app's codes, passkeys, and codes on paper for when
both are lost."""

from dataclasses import dataclass

from django.db import transaction

from tenants.audit import record_audit
from tenants.credentials import Passkey, RecoveryCode, Totp
from tenants.members import Refused
from tenants.models import Tenant, User
from tenants.notices import Change, record_change
from tenants.recovery_codes import codes_left, new_recovery_codes, take_recovery_code
from tenants.sessions import end_sessions
from tenants.totp import confirm_totp, take_totp


@dataclass(frozen=True)
class Factors:
    """totp: an app's codes are on. passkeys: newest first."""

    totp: bool
    passkeys: tuple[Passkey, ...]
    recovery_codes_left: int

    @property
    def kinds(self) -> list[str]:
        return [*(["totp"] if self.totp else []), *(["passkey"] if self.passkeys else [])]


def factors_of(user: User) -> Factors:
    totp = Totp.objects.filter(user=user).exclude(confirmed_at=None).exists()
    passkeys = Passkey.objects.filter(user=user).order_by("-created_at", "-id")
    return Factors(totp, tuple(passkeys), codes_left(user))


def has_second_factor(user: User) -> bool:
    return (
        Totp.objects.filter(user=user).exclude(confirmed_at=None).exists() or Passkey.objects.filter(user=user).exists()
    )


@transaction.atomic
def take_code(user: User, typed: str) -> bool:
    """An app's six digits, or a code on paper: whether it is right. It is not right a second time."""
    digits = "".join(typed.split())
    if len(digits) == 6 and digits.isascii() and digits.isdigit():
        return take_totp(user, digits)
    if not take_recovery_code(user, typed):
        return False
    record_change(user=user, change=Change.RECOVERY_CODE_USED, details={"left": codes_left(user)})
    return True


@transaction.atomic
def turn_totp_on(*, user: User, code: str, session_key: str | None) -> list[str]:
    """The recovery codes, where these are the first. Every other session ends: it has not proved as much."""
    if not confirm_totp(user, "".join(code.split())):
        raise Refused("wrong_code", "code: this is not what the app should show: check the clock of its device", "code")
    record_change(user=user, change=Change.TOTP_ON)
    return after_adding(user, session_key)


def after_adding(user: User, session_key: str | None) -> list[str]:
    """What every new factor brings: recovery codes where there are none, and the end of other sessions."""
    end_sessions(user=user, but=session_key)
    return [] if RecoveryCode.objects.filter(user=user).exists() else new_recovery_codes(user)


@transaction.atomic
def turn_totp_off(*, user: User) -> bool:
    """False where it was not on."""
    if not Totp.objects.filter(user=user).delete()[0]:
        return False
    record_change(user=user, change=Change.TOTP_OFF)
    after_removing(user)
    return True


def after_removing(user: User) -> None:
    """Codes on paper stand in for a factor; without one they are of no use."""
    if not has_second_factor(user):
        RecoveryCode.objects.filter(user=user).delete()


@transaction.atomic
def renew_recovery_codes(*, user: User) -> list[str]:
    if not has_second_factor(user):
        raise Refused("no_second_factor", "Recovery codes stand in for a second factor: set one up first.")
    record_change(user=user, change=Change.NEW_RECOVERY_CODES)
    return new_recovery_codes(user)


@transaction.atomic
def forget_factors(*, user: User, actor: str) -> None:
    """By an operator, for somebody who has lost them all: the password alone lets them in, and every session ends."""
    for model in (Totp, Passkey, RecoveryCode):
        model.objects.filter(user=user).delete()
    end_sessions(user=user)
    record_change(user=user, change=Change.FACTORS_FORGOTTEN, actor=actor)


@transaction.atomic
def require_second_factor(*, tenant: Tenant, is_required: bool, actor: User) -> None:
    """For all members. Raises Refused for somebody who would shut themselves out."""
    if is_required and not has_second_factor(actor):
        raise Refused("no_second_factor", "Set up a second factor of your own first: you would be shut out.")
    if Tenant.objects.filter(id=tenant.id, requires_second_factor=not is_required).update(
        requires_second_factor=is_required
    ):
        details = {"is_required": is_required}
        record_audit(tenant=tenant, actor=actor.id, action="tenant.second_factor", target=tenant.id, details=details)
