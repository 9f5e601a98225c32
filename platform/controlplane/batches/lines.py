"""Lines as they are worked off: begun, ended once, begun anew where an attempt was lost."""

from typing import Any, Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from controlplane.batches.attempts import attempt_id
from controlplane.batches.models import Batch, BatchLine, LostAttempt
from controlplane.batches.states import LineState

# What `BatchLine.failure` holds.
Failure = dict[str, Any]
_COUNTED: Final = {LineState.COMPLETED: "completed", LineState.FAILED: "failed"}


def ended_numbers(batch: Batch) -> set[int]:
    """Lines that are never run again."""
    rows = BatchLine.objects.filter(batch=batch).exclude(state=LineState.RUNNING)
    return set(rows.values_list("number", flat=True))


@transaction.atomic
def take_over(batch: Batch) -> None:
    """What runs by the books, while nobody works on the batch, was lost with its worker."""
    for line in BatchLine.objects.filter(batch=batch, state=LineState.RUNNING):
        lose_attempt(line)


def begin_line(batch: Batch, number: int, custom_id: str) -> BatchLine:
    defaults = {"tenant_id": batch.tenant_id, "custom_id": custom_id}
    return BatchLine.objects.get_or_create(batch=batch, number=number, defaults=defaults)[0]


@transaction.atomic
def lose_attempt(line: BatchLine) -> None:
    """Its answer is gone. What it is charged, if anything, is given back (`lost`); the next attempt has another id."""
    LostAttempt.objects.get_or_create(
        request_id=attempt_id(line.batch_id, line.number, line.attempt),
        defaults={"tenant_id": line.tenant_id, "batch_id": line.batch_id},
    )
    line.attempt += 1
    line.save(update_fields=["attempt"])


@transaction.atomic
def end_line(line: BatchLine, state: LineState, answer: str, prompts: int, failure: Failure | None = None) -> None:
    """prompts: how many requests to the engine may have been billed for it."""
    running = BatchLine.objects.filter(id=line.id, attempt=line.attempt, state=LineState.RUNNING)
    ended = {"state": state, "answer": answer, "prompts": prompts, "failure": failure, "ended_at": timezone.now()}
    if running.update(**ended):
        counted = _COUNTED[state]
        Batch.objects.filter(id=line.batch_id).update(**{counted: F(counted) + 1})
