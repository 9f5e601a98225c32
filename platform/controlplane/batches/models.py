"""Files that keys upload and get back, and the batches of requests that turn the one into the other."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.batches.states import ENDS, LineState, Status
from tenants.ids import new_id
from tenants.models import ApiKey, Tenant
from tenants.scope import TenantManager


def new_file_id() -> str:
    return new_id("file")


def new_batch_id() -> str:
    return new_id("batch")


class Purpose(models.TextChoices):
    """batch: lines of requests. batch_output: lines of answers, or of errors."""

    BATCH = "batch"
    BATCH_OUTPUT = "batch_output"


class File(models.Model):
    """Bytes of a key's, in the object store under its id. filename: what the caller called it, for people to read.

    From `expires_at` on it is as if it had been deleted."""

    id = models.CharField(primary_key=True, max_length=32, default=new_file_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    purpose = models.CharField(max_length=16, choices=Purpose)
    filename = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()

    objects = TenantManager["File"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["key", "-created_at", "-id"], name="files_newest_first"),
            models.Index(fields=["expires_at"], name="files_by_expiry"),
        ]


def _money(**more: Any) -> "models.DecimalField[Any, Any]":
    return models.DecimalField(max_digits=30, decimal_places=12, **more)


class Batch(models.Model):
    """Requests of one file, to be answered within a day at a discount.

    Files are named by id and not by foreign key: they expire, the batch stays. output_file_id, error_file_id: chosen
    when the files are begun, so that a worker that takes over writes the same ones.
    errors: why none of it was run, or why it was stopped: [{"code", "message", "line", "param"}].
    total, completed, failed: lines. reserved: money held when it was created.
    amount and tokens: what its lines came to, once it has ended.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_batch_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    endpoint = models.CharField(max_length=32)
    completion_window = models.CharField(max_length=8)
    metadata = models.JSONField(null=True)
    status = models.CharField(max_length=16, choices=Status, db_default=Status.VALIDATING)
    errors = models.JSONField(db_default=[])
    input_file_id = models.CharField(max_length=32)
    output_file_id = models.CharField(max_length=32, null=True)
    error_file_id = models.CharField(max_length=32, null=True)
    output_kept_seconds = models.PositiveIntegerField()
    total = models.PositiveIntegerField(db_default=0)
    completed = models.PositiveIntegerField(db_default=0)
    failed = models.PositiveIntegerField(db_default=0)
    reserved = _money(db_default=0)
    amount = _money(null=True)
    prompt_tokens = models.PositiveBigIntegerField(null=True)
    cached_tokens = models.PositiveBigIntegerField(null=True)
    completion_tokens = models.PositiveBigIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    in_progress_at = models.DateTimeField(null=True)
    cancelling_at = models.DateTimeField(null=True)
    finalizing_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = TenantManager["Batch"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="batches_newest_first"),
            models.Index(fields=["created_at"], condition=~Q(status__in=ENDS), name="open_batches"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(status__in=ENDS, ended_at__isnull=False) | (~Q(status__in=ENDS) & Q(ended_at=None)),
                name="batch_ends_once",
            ),
            models.CheckConstraint(condition=Q(total__gte=F("completed") + F("failed")), name="batch_lines_add_up"),
        ]


class BatchLine(models.Model):
    """One line of a batch that was begun. number: of the line in the file, from 1.

    attempt: the newest one; each has a request id of its own (`attempts.attempt_id`). prompts: how many requests to the
    engine that attempt was. answer: the line for the output or error file, until that is written.
    failure: why it failed for good: {"status", "code", "message", "param"}.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="lines")
    number = models.PositiveIntegerField()
    custom_id = models.CharField(max_length=512)
    state = models.CharField(max_length=16, choices=LineState, db_default=LineState.RUNNING)
    attempt = models.PositiveIntegerField(db_default=1)
    prompts = models.PositiveIntegerField(db_default=0)
    answer = models.TextField(null=True)
    failure = models.JSONField(null=True)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    objects = TenantManager["BatchLine"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["batch", "number"], name="one_row_per_line"),
            models.CheckConstraint(
                condition=Q(state="running", ended_at=None) | (~Q(state="running") & Q(ended_at__isnull=False)),
                name="line_ends_once",
            ),
        ]


class LostAttempt(models.Model):
    """An attempt at a line whose answer nobody kept: its worker or its engine died. What it is charged, once that is
    known, is given back as credit, because the line is run again."""

    request_id = models.CharField(primary_key=True, max_length=80)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="+")
    lost_at = models.DateTimeField(db_default=Now())

    objects = TenantManager["LostAttempt"]()
