"""Files and batches as OpenAI shows them."""

from datetime import datetime
from typing import Any, Final

from controlplane.batches.models import Batch, File
from controlplane.batches.states import ENDS, Status
from controlplane.batches.totals import Totals

Json = dict[str, Any]
# Which time an end is told as.
_ENDED: Final = {
    Status.COMPLETED: "completed_at",
    Status.FAILED: "failed_at",
    Status.EXPIRED: "expired_at",
    Status.CANCELLED: "cancelled_at",
}


def seconds(at: datetime | None) -> int | None:
    return int(at.timestamp()) if at else None


def file_body(file: File) -> Json:
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": seconds(file.created_at),
        "expires_at": seconds(file.expires_at),
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def batch_body(batch: Batch, totals: Totals) -> Json:
    """cost: exact, of the lines that have run so far; usage: their tokens."""
    has_ended = batch.status in ENDS
    errors = {"object": "list", "data": batch.errors} if batch.errors else None
    ends = {name: seconds(batch.ended_at) if batch.status == status else None for status, name in _ENDED.items()}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": errors,
        "input_file_id": batch.input_file_id,
        "completion_window": batch.completion_window,
        "status": batch.status,
        "output_file_id": batch.output_file_id if has_ended else None,
        "error_file_id": batch.error_file_id if has_ended else None,
        "created_at": seconds(batch.created_at),
        "in_progress_at": seconds(batch.in_progress_at),
        "expires_at": seconds(batch.expires_at),
        "finalizing_at": seconds(batch.finalizing_at),
        "cancelling_at": seconds(batch.cancelling_at),
        **ends,
        "request_counts": {"total": batch.total, "completed": batch.completed, "failed": batch.failed},
        "metadata": batch.metadata,
        "usage": totals.usage(),
        "cost": totals.cost,
    }
