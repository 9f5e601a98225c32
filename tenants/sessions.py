"""Sessions, kept on our side: listed and ended by whoever opened them. Django's SESSION_ENGINE."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from tenants.credentials import Session
from tenants.models import User

SEEN_EVERY: Final = timedelta(minutes=1)
COMPANY: Final = "company"


@dataclass(frozen=True)
class Company:
    """Through whose identity provider a session was opened: it shows that tenant, and nothing else of the person."""

    tenant_id: str
    provider_id: str


def company_of(session: SessionBase) -> Company | None:
    found = session.get(COMPANY)
    return Company(**found) if found else None


def key_digest(session_key: str | None) -> str:
    return hashlib.sha256((session_key or "").encode()).hexdigest()


class SessionStore(SessionBase):
    """Rows of `Session`. seen_at: of the row that was loaded."""

    seen_at: datetime | None = None

    def load(self) -> dict[str, Any]:
        row = Session.objects.filter(key_digest=key_digest(self.session_key), expires_at__gt=timezone.now()).first()
        if row is None:
            self._session_key = None
            return {}
        self.seen_at = row.seen_at
        return dict(self.decode(row.data))

    def exists(self, session_key: str) -> bool:
        return Session.objects.filter(key_digest=key_digest(session_key)).exists()

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]  # not in the stubs
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        if self.session_key is None:
            return self.create()
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]  # not in the stubs
        digest = key_digest(self.session_key)
        fields = {
            "data": self.encode(data),
            "user_id": data.get(SESSION_KEY),
            "provider_id": data.get(COMPANY, {}).get("provider_id"),
            "expires_at": self.get_expiry_date(),
        }
        if must_create:
            try:
                with transaction.atomic():
                    Session.objects.create(key_digest=digest, **fields)
            except IntegrityError:
                raise CreateError from None
        elif not Session.objects.filter(key_digest=digest).update(**fields):
            raise UpdateError
        return None

    def delete(self, session_key: str | None = None) -> None:
        Session.objects.filter(key_digest=key_digest(session_key or self.session_key)).delete()

    @classmethod
    def clear_expired(cls) -> None:
        Session.objects.filter(expires_at__lte=timezone.now()).delete()


def note_seen(store: SessionStore, *, address: str, user_agent: str) -> None:
    """At most one write a minute and session."""
    now = timezone.now()
    if store.seen_at is not None and store.seen_at > now - SEEN_EVERY:
        return
    rows = Session.objects.filter(key_digest=key_digest(store.session_key))
    stale = rows.filter(models.Q(seen_at=None) | models.Q(seen_at__lte=now - SEEN_EVERY))
    stale.update(seen_at=now, address=address[:64], user_agent=user_agent[:300])
    store.seen_at = now


def sessions_of(user: User, company: Company | None = None) -> models.QuerySet[Session]:
    """company: only those that were opened through it, as it must not see the others."""
    rows = Session.objects.filter(user=user, expires_at__gt=timezone.now())
    return rows.filter(provider_id=company.provider_id) if company else rows


def end_session(*, user: User, session_id: str, company: Company | None = None) -> bool:
    """False where the person has no such session."""
    return bool(sessions_of(user, company).filter(id=session_id).delete()[0])


def end_sessions(*, user: User, but: str | None = None, company: Company | None = None) -> int:
    """How many ended. but: the key of the one that stays."""
    return sessions_of(user, company).exclude(key_digest=key_digest(but)).delete()[0]
