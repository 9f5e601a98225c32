"""Between the password and the second factor: what a browser's session remembers, which opens nothing by itself."""

import time
from typing import Final

from django.contrib.sessions.backends.base import SessionBase

from tenants.models import User

PENDING: Final = "second_step"
PASSKEY: Final = "passkey"
PENDING_SECONDS: Final = 300


def start_second_step(session: SessionBase, user: User) -> None:
    """Whatever the session was before ends. The hash ties it to the password that was given."""
    session.flush()
    session[PENDING] = {"user": user.id, "at": time.time(), "hash": user.get_session_auth_hash()}
    session.set_expiry(PENDING_SECONDS)
