"""A batch ends: its answers become files, its reservation goes back, and it says what it came to.

Whoever dies in the middle is taken over: the files have been named before, and are written anew.
"""

from collections.abc import Iterator
from datetime import timedelta
from tempfile import TemporaryFile
from typing import Any, Final

import msgspec
from django.db import transaction
from django.utils import timezone

from controlplane.batches.input_lines import parse_line, raw_lines
from controlplane.batches.lines import ended_numbers
from controlplane.batches.models import Batch, BatchLine, File, Purpose, new_file_id
from controlplane.batches.starting import announce
from controlplane.batches.states import ENDS, RUNNING, LineState, Status
from controlplane.batches.store import chunks_of, put_file
from controlplane.batches.totals import totals_plan
from controlplane.quotas.services import release_hold
from tenants.sql import run_sync

# What the lines that were not run are told.
_NOT_RUN: Final = {
    Status.EXPIRED: ("batch_expired", "The batch was not done within 24 hours, and this line had not been run."),
    Status.CANCELLED: ("batch_cancelled", "The batch was cancelled before this line was run."),
    Status.FAILED: ("batch_failed", "The batch was stopped before this line was run."),
}


def finish_batch(batch: Batch, end: Status) -> None:
    """Idempotent. end: what it comes to, unless a worker before had begun to finish it otherwise: that is kept."""
    if not _begin(batch, end):
        return
    files = [
        _write(batch, batch.output_file_id, "output", _answers(batch, LineState.COMPLETED)),
        _write(batch, batch.error_file_id, "error", _errors(batch, end)),
    ]
    _end(batch, end, [file for file in files if file is not None])


@transaction.atomic
def _begin(batch: Batch, end: Status) -> bool:
    """False for one that has ended."""
    row = Batch.objects.select_for_update().get(id=batch.id)
    if row.status in ENDS:
        return False
    row.output_file_id = row.output_file_id or new_file_id()
    row.error_file_id = row.error_file_id or new_file_id()
    row.finalizing_at = row.finalizing_at or timezone.now()
    if row.status in RUNNING and end == Status.COMPLETED:
        row.status = Status.FINALIZING
    row.save(update_fields=["output_file_id", "error_file_id", "finalizing_at", "status"])
    batch.refresh_from_db()
    return True


def _answers(batch: Batch, state: LineState) -> Iterator[bytes]:
    rows = BatchLine.objects.filter(batch=batch, state=state, answer__isnull=False).order_by("number")
    for answer in rows.values_list("answer", flat=True).iterator(chunk_size=500):
        yield f"{answer}\n".encode()


def _errors(batch: Batch, end: Status) -> Iterator[bytes]:
    yield from _answers(batch, LineState.FAILED)
    if end not in _NOT_RUN:
        return
    code, message = _NOT_RUN[end]
    done = ended_numbers(batch)
    try:
        chunks = chunks_of(batch.tenant_id, batch.input_file_id)
    except FileNotFoundError:  # which is why it has failed
        return
    for number, raw in raw_lines(chunks):
        if number not in done:
            error = {"code": code, "message": message}
            yield error_line(number, parse_line(raw).custom_id, error=error).encode() + b"\n"


def error_line(number: int, custom_id: str, *, response: Any = None, error: Any = None) -> str:
    record = {"line": number, "custom_id": custom_id, "response": response, "error": error}
    return msgspec.json.encode(record).decode()


def _write(batch: Batch, file_id: str | None, kind: str, lines: Iterator[bytes]) -> File | None:
    """None where there is nothing to say. The row comes with the batch's end."""
    assert file_id is not None
    with TemporaryFile() as spool:  # the store cannot read one of its files while it takes another
        spool.writelines(lines)
        size = spool.tell()
        if not size:
            return None
        spool.seek(0)
        put_file(batch.tenant_id, file_id, spool)
    return File(
        id=file_id,
        tenant_id=batch.tenant_id,
        key_id=batch.key_id,
        purpose=Purpose.BATCH_OUTPUT,
        filename=f"{batch.id}_{kind}.jsonl",
        size=size,
        expires_at=timezone.now() + timedelta(seconds=batch.output_kept_seconds),
    )


@transaction.atomic
def _end(batch: Batch, end: Status, files: list[File]) -> None:
    row = Batch.objects.select_for_update().get(id=batch.id)
    if row.status in ENDS:
        return
    run_sync(release_hold(request_id=row.id), tenant=row.tenant_id)
    totals = run_sync(totals_plan(tenant_id=row.tenant_id, batch_id=row.id), tenant=row.tenant_id)
    written = {file.id for file in files}
    for file in files:
        file.save(force_insert=True)
    row.output_file_id = row.output_file_id if row.output_file_id in written else None
    row.error_file_id = row.error_file_id if row.error_file_id in written else None
    row.status, row.ended_at = end, timezone.now()
    row.amount, row.prompt_tokens = totals.amount, totals.prompt_tokens
    row.cached_tokens, row.completion_tokens = totals.cached_tokens, totals.completion_tokens
    row.save()
    BatchLine.objects.filter(batch=row).update(answer=None)
    announce(row)
