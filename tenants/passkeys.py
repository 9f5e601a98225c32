"""Passkeys (WebAuthn): a device's own key pair, bound to this host, in place of an app's codes.

The private key never leaves the device, and a page of another host cannot ask for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone
from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from tenants.credentials import Passkey
from tenants.members import Refused
from tenants.models import User
from tenants.notices import Change, record_change
from tenants.second_factor import after_adding, after_removing

MAX_PASSKEYS: Final = 10
State = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """host: what passkeys are bound to. origins: pages that may use them, `https://host[:port]`."""

    host: str
    origins: tuple[str, ...]

    def server(self) -> Fido2Server:
        rp = PublicKeyCredentialRpEntity(id=self.host, name="Veneer")
        return Fido2Server(rp, verify_origin=lambda origin: origin in self.origins)


def _credentials(user: User, site: Site) -> list[AttestedCredentialData]:
    rows = Passkey.objects.filter(user=user, rp_id=site.host)
    return [AttestedCredentialData(bytes(row.credential)) for row in rows]


def start_adding(*, user: User, site: Site) -> tuple[dict[str, Any], State]:
    """What the browser is asked for, and what must be remembered until it answers."""
    if Passkey.objects.filter(user=user).count() >= MAX_PASSKEYS:
        raise Refused("too_many_passkeys", f"You have {MAX_PASSKEYS} passkeys: remove one that you do not use.")
    options, state = site.server().register_begin(
        PublicKeyCredentialUserEntity(id=user.id.encode(), name=user.email, display_name=user.email),
        _credentials(user, site),
        resident_key_requirement=ResidentKeyRequirement.DISCOURAGED,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    return dict(options), dict(state)


@transaction.atomic
def finish_adding(
    *, user: User, site: Site, state: State, answer: Mapping[str, Any], name: str, session_key: str | None
) -> list[str]:
    """The recovery codes, where this is the first factor. Raises Refused for an answer that proves nothing."""
    try:
        found = site.server().register_complete(state, answer)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _not_valid("The browser's answer does not fit what was asked: start again.") from None
    credential = found.credential_data
    assert credential is not None
    try:
        with transaction.atomic():
            row = Passkey.objects.create(
                user=user, name=name, rp_id=site.host, key_id=websafe_encode(credential.credential_id),
                credential=bytes(credential), sign_count=found.counter,
            )  # fmt: skip
    except IntegrityError:
        raise _not_valid("This passkey is in use already.") from None
    record_change(user=user, change=Change.PASSKEY_ADDED, target=row.id, details={"name": name})
    return after_adding(user, session_key)


def start_using(*, user: User, site: Site) -> tuple[dict[str, Any], State]:
    """Raises Refused where the person has none for this host."""
    known = _credentials(user, site)
    if not known:
        raise Refused("no_passkey", f"You have no passkey for {site.host}: use a code.")
    server = site.server()
    options, state = server.authenticate_begin(known, user_verification=UserVerificationRequirement.PREFERRED)
    return dict(options), dict(state)


@transaction.atomic
def is_right_answer(*, user: User, site: Site, state: State, answer: Mapping[str, Any]) -> bool:
    """Whether one of the person's passkeys signed what was asked. A counter that runs backwards is a copied key."""
    try:
        used = site.server().authenticate_complete(state, _credentials(user, site), answer)
        counter = AuthenticationResponse.from_dict(answer).response.authenticator_data.counter
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    row = Passkey.objects.select_for_update().get(user=user, key_id=websafe_encode(used.credential_id))
    if (counter or row.sign_count) and counter <= row.sign_count:
        return False
    row.sign_count, row.used_at = counter, timezone.now()
    row.save(update_fields=["sign_count", "used_at"])
    return True


@transaction.atomic
def remove_passkey(*, user: User, passkey_id: str) -> bool:
    """False where the person has no such passkey."""
    if not Passkey.objects.filter(user=user, id=passkey_id).delete()[0]:
        return False
    record_change(user=user, change=Change.PASSKEY_REMOVED, target=passkey_id)
    after_removing(user)
    return True


def _not_valid(message: str) -> Refused:
    return Refused("passkey_not_valid", f"credential: {message}", "credential")
