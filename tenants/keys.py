"""The text of an API key: `vnr_<prefix>_<secret><checksum>`, and the HMAC that stands for it in the database.

The checksum lets a secret scanner, and us, tell a key from noise without asking the database.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from typing import NamedTuple

from django.conf import settings

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHAPE = re.compile(r"vnr_([0-9A-Za-z]{10})_([0-9A-Za-z]{32})([0-9A-Za-z]{6})")


class KeyText(NamedTuple):
    prefix: str
    raw: str


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _checksum(text: str) -> str:
    value = zlib.crc32(text.encode())
    digits = ""
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits = _ALPHABET[digit] + digits
    return digits


def new_key_text() -> KeyText:
    prefix, secret = _random(10), _random(32)
    body = f"vnr_{prefix}_{secret}"
    return KeyText(prefix, body + _checksum(body))


def parse_key(raw: str) -> KeyText | None:
    """None unless the text is shaped like a key and its checksum holds."""
    found = _SHAPE.fullmatch(raw)
    if not found or _checksum(raw[:-6]) != found[3]:
        return None
    return KeyText(found[1], raw)


def newest_pepper() -> int:
    return max(settings.KEY_PEPPERS)


def digest_of(raw: str, pepper_version: int) -> str | None:
    """Hex HMAC-SHA256, or None when that pepper has been retired."""
    pepper = settings.KEY_PEPPERS.get(pepper_version)
    return None if pepper is None else hmac.new(pepper, raw.encode(), hashlib.sha256).hexdigest()


def is_same(raw: str, digest: str, pepper_version: int) -> bool:
    found = digest_of(raw, pepper_version)
    return found is not None and hmac.compare_digest(found, digest)
