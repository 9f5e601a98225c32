"""Guessing a password or a code is slow: five wrong ones for an account from an address, then a wait.

An attempt is counted before its password is looked at, in one statement, so that parallel guesses gain nothing.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.utils import timezone

from tenants.models import SignInAttempts
from tenants.sql import Plan, Query

ALLOWED: Final = 5
WINDOW: Final = timedelta(minutes=5)
# Counted for an account from anywhere: a right password, or a mail server, must not be tried out by many machines.
SECOND_FACTOR: Final = "second factor"
RESET_LINKS: Final = "reset links"


@dataclass
class LockedOut(Exception):
    """Too many wrong passwords. retry_after: whole seconds after which the next attempt is looked at."""

    retry_after: int


# The window opens with its first attempt and is not moved by later ones: the wait that is told is the true one.
_COUNT = """
INSERT INTO tenants_signinattempts AS a (account, address, attempts, since)
VALUES (%(account)s, %(address)s, 1, %(now)s)
ON CONFLICT (account, address) DO UPDATE SET
  attempts = CASE WHEN a.since <= %(now)s - %(window)s THEN 1 ELSE a.attempts + 1 END,
  since = CASE WHEN a.since <= %(now)s - %(window)s THEN %(now)s ELSE a.since END
RETURNING attempts, since
"""


def account_digest(email: str) -> str:
    """People type passwords into the wrong field: what was typed is not kept."""
    return hashlib.sha256(email.strip().lower().encode()).hexdigest()


def count_attempt_plan(*, email: str, address: str) -> Plan[None]:
    """Count one attempt; LockedOut when there were too many. A refused attempt must not look at the password."""
    now = timezone.now()
    key = {"account": account_digest(email), "address": address[:64]}
    [row] = yield Query(_COUNT, {**key, "now": now, "window": WINDOW})
    if row["attempts"] > ALLOWED:
        left = row["since"] + WINDOW - now
        raise LockedOut(max(1, -(-left // timedelta(seconds=1))))


def forget_attempts(*, email: str, address: str) -> None:
    """They were let in."""
    SignInAttempts.objects.filter(account=account_digest(email), address=address[:64]).delete()
