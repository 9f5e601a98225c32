"""A batch is cancelled: lines under way end as they would, no more are begun, what has finished is kept and paid."""

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.batches.models import Batch
from controlplane.batches.starting import announce
from controlplane.batches.states import RUNNING, Status
from controlplane.celery import enqueue
from controlplane.errors import Conflict, NotFound
from tenants.audit import record_audit


def batch_not_found(batch_id: str) -> NotFound:
    shown = batch_id if len(batch_id) <= 60 else f"{batch_id[:60]}..."
    return NotFound(f"There is no batch `{shown}`.", code="batch_not_found")


def batch_named(rows: "QuerySet[Batch]", batch_id: str) -> Batch:
    """rows: those that may be seen. NotFound for another's and a missing one alike."""
    found = rows.filter(id=batch_id).first() if "\x00" not in batch_id else None
    if found is None:
        raise batch_not_found(batch_id)
    return found


@transaction.atomic
def cancel_batch(rows: "QuerySet[Batch]", batch_id: str, *, actor: str) -> Batch:
    """Again is no error. Conflict for one that has ended, or is about to."""
    batch = batch_named(rows.select_for_update(of=("self",)), batch_id)
    if batch.status == Status.CANCELLING:
        return batch
    if batch.status not in RUNNING:
        raise Conflict(f"The batch is {batch.status}: it cannot be cancelled any more.", code="batch_ended")
    batch.status, batch.cancelling_at = Status.CANCELLING, timezone.now()
    batch.save(update_fields=["status", "cancelling_at"])
    record_audit(tenant=batch.tenant, actor=actor, action="batch.cancel", target=batch.id)
    enqueue("batches.work")
    announce(batch)
    return batch
