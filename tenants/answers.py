"""Answers that are kept for a day: whoever asks again under the same idempotency key is answered as the first time.

A row is written in the transaction of the deed that it answers for, so there is never the one without the other.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import connection, models
from django.db.models.functions import Now
from django.utils import timezone

from tenants.scope import ALL_TENANTS, TenantManager, tenant_scope
from tenants.sealing import seal, unseal

KEPT_FOR: Final = timedelta(hours=24)


class KeptAnswer(models.Model):
    """name: SHA-256 of who asked what under which key. sealed: status, body and the digest of what was asked; sealed,
    because an answer may hold what is shown once. tenant: None for a person who belongs to none."""

    tenant = models.ForeignKey("tenants.Tenant", null=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=64, unique=True)
    sealed = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False, db_index=True)

    objects = TenantManager["KeptAnswer"]()


@dataclass(frozen=True)
class Answer:
    """body: JSON, or None where there is none. asked: digest of the request that it answers."""

    status: int
    body: Any
    asked: str


class AnswerUnreadable(Exception):
    """It was sealed with a pepper that has been retired since."""


@dataclass(frozen=True)
class Place:
    """Where one answer is kept. Two callers, tenants, routes or keys never share one."""

    tenant_id: str | None
    actor: str
    route: str
    key: str

    @property
    def name(self) -> str:
        parts = (self.tenant_id or "", self.actor, self.route, self.key)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def scope(self) -> str:
        return self.tenant_id or ALL_TENANTS


def lock_place(place: Place) -> bool:
    """False while another transaction has it. Held until the transaction around ends."""
    number = int.from_bytes(bytes.fromhex(place.name)[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        row = cursor.fetchone()
    assert row is not None
    return bool(row[0])


def answer_at(place: Place) -> Answer | None:
    """Raises AnswerUnreadable."""
    with tenant_scope(place.scope):
        rows = KeptAnswer.objects.filter(name=place.name, created_at__gt=timezone.now() - KEPT_FOR)
        row = rows.first()
    if row is None:
        return None
    text = unseal(row.sealed)
    if text is None:
        raise AnswerUnreadable
    return Answer(**json.loads(text))


def keep_answer(place: Place, answer: Answer) -> None:
    """In place of one that is older than a day."""
    with tenant_scope(place.scope):
        KeptAnswer.objects.filter(name=place.name).delete()
        KeptAnswer.objects.create(tenant_id=place.tenant_id, name=place.name, sealed=seal(json.dumps(vars(answer))))


def forget_answers() -> None:
    """Those older than a day, of all tenants."""
    with tenant_scope(ALL_TENANTS):
        KeptAnswer.objects.filter(created_at__lte=timezone.now() - KEPT_FOR).delete()
