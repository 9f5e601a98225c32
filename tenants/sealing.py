"""Secrets that must be read again, kept so that a copy of the database does not give them away."""

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from tenants.keys import newest_pepper


def seal(text: str) -> str:
    """`<version>:<Fernet token>`, under a key that comes of the newest pepper."""
    version = newest_pepper()
    box = _box(version)
    assert box is not None
    return f"{version}:{box.encrypt(text.encode()).decode()}"


def unseal(sealed: str) -> str | None:
    """None where the pepper it was sealed with has been retired."""
    version, _, token = sealed.partition(":")
    box = _box(int(version))
    try:
        return box.decrypt(token.encode()).decode() if box else None
    except InvalidToken:
        return None


def _box(version: int) -> Fernet | None:
    """The pepper itself digests API keys; what encrypts is another key that is derived from it."""
    pepper = settings.KEY_PEPPERS.get(version)
    if pepper is None:
        return None
    return Fernet(base64.urlsafe_b64encode(hmac.new(pepper, b"sealed secrets", hashlib.sha256).digest()))
