"""A batch is created: its file is read through once, and what it may come to at most is reserved, or it is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Final

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.batches.asked import WINDOW, Asked
from controlplane.batches.files import file_named, file_not_found
from controlplane.batches.input_lines import MAX_FAULTS, Bound, Fault, Line, LineTooLong, bound_of, raw_lines, read_line
from controlplane.batches.models import Batch, File, Purpose, new_file_id
from controlplane.batches.states import OPEN, Status
from controlplane.batches.store import chunks_of, put_file
from controlplane.billing.pricing import PinnedPrice, most_it_may_cost
from controlplane.celery import enqueue
from controlplane.errors import ApiError, RateLimited, Unavailable
from controlplane.events import publish
from controlplane.inference.admission import choose_model
from controlplane.quotas.batch_holds import reserve_batch
from tenants.audit import record_audit
from tenants.auth import Principal
from tenants.models import Tenant
from tenants.sql import run_sync

COMPLETES_IN: Final = timedelta(hours=24)
# The reservation outlives the batch, which ends it: nothing has to renew it.
_HOLD_SECONDS: Final = int((COMPLETES_IN + timedelta(hours=2)).total_seconds())
_NOTHING: Final = Decimal(0)


class Prices:
    """What a model costs in a batch, by the name that lines have for it; asked for once."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self._known: dict[str, PinnedPrice | None] = {}

    def most(self, bound: Bound | None) -> tuple[Decimal, int]:
        """Money and tokens that a line may come to; nothing for one that cannot run. Raises Unavailable where what it
        names has no price."""
        price = self._of(bound.model) if bound else None
        if bound is None or price is None:
            return _NOTHING, 0
        amount = most_it_may_cost(price, prompt=bound.prompt_tokens, max_completion=bound.completion_tokens)
        return amount, bound.prompt_tokens + bound.completion_tokens

    def _of(self, model: str) -> PinnedPrice | None:
        if model not in self._known:
            try:
                plan = choose_model(self._principal, model, is_batch=True)
                self._known[model] = run_sync(plan, tenant=self._principal.tenant_id).price
            except Unavailable:
                raise
            except ApiError:  # the line will be told
                self._known[model] = None
        return self._known[model]


@dataclass
class Look:
    """What was found in a file."""

    total: int = 0
    amount: Decimal = _NOTHING
    tokens: int = 0
    faults: list[Fault] = field(default_factory=list)


def start_batch(principal: Principal, asked: Asked, context_len: int) -> Batch:
    """Within the tenant's scope. A file with lines that are no requests makes a batch that has failed, and costs
    nothing. Raises NotFound, InsufficientFunds, RateLimited, Unavailable."""
    file = file_named(principal, asked.input_file_id)
    try:
        look = look_through(principal, file, asked.endpoint, context_len)
    except FileNotFoundError:
        raise file_not_found(asked.input_file_id) from None
    with transaction.atomic():
        file_named(principal, file.id, is_locked=True)
        _check_open(principal)
        batch = _failed(principal, asked, look) if look.faults else _reserved(principal, asked, look)
        tenant = Tenant.objects.get(id=principal.tenant_id)
        details = {"endpoint": batch.endpoint, "lines": batch.total, "reserved": str(batch.reserved)}
        record_audit(tenant=tenant, actor=principal.key_id, action="batch.create", target=batch.id, details=details)
        announce(batch)
    return batch


def announce(batch: Batch) -> None:
    """Tell open pages, once the transaction commits."""
    data = {"id": batch.id, "status": batch.status}
    publish(tenant_id=batch.tenant_id, event="batch.changed", data=data)


def look_through(principal: Principal, file: File, endpoint: str, context_len: int) -> Look:
    """Reads to the end, or until there are enough faults."""
    look, prices, known = Look(), Prices(principal), set[str]()
    for found in _lines_of(file, endpoint, known):
        look.total += 1
        if isinstance(found, Fault):
            look.faults.append(found)
        else:
            amount, tokens = prices.most(bound_of(found, context_len))
            look.amount, look.tokens = look.amount + amount, look.tokens + tokens
        if look.total > settings.MAX_BATCH_LINES:
            text = f"The file has more than {settings.MAX_BATCH_LINES} lines: send it in parts."
            look.faults = [Fault(look.total, "too_many_lines", text, "input_file_id")]
        if len(look.faults) >= MAX_FAULTS or look.total > settings.MAX_BATCH_LINES:
            break
    if not look.total:
        look.faults.append(
            Fault(None, "empty_file", "The file has no lines: send one for each request.", "input_file_id")
        )
    return look


def _lines_of(file: File, endpoint: str, known: set[str]) -> Iterator[Line | Fault]:
    try:
        for number, raw in raw_lines(chunks_of(file.tenant_id, file.id)):
            yield read_line(number, raw, endpoint, known)
    except LineTooLong as long:
        limit = settings.MAX_BODY_BYTES
        yield Fault(
            long.number, "line_too_long", f"Line {long.number} has more than {limit} bytes: shorten its prompt."
        )


def _check_open(principal: Principal) -> None:
    limit = settings.MAX_OPEN_BATCHES_PER_TENANT
    if Batch.objects.filter(tenant_id=principal.tenant_id, status__in=OPEN).count() >= limit:
        raise RateLimited(
            f"Your account has {limit} batches that have not ended, as many as it may: wait for one, or cancel it.",
            code="too_many_batches",
            headers={"Retry-After": "60"},
        )


def _new(principal: Principal, asked: Asked, look: Look) -> Batch:
    now = timezone.now()
    return Batch(
        tenant_id=principal.tenant_id,
        key_id=principal.key_id,
        endpoint=asked.endpoint,
        completion_window=WINDOW,
        metadata=asked.metadata,
        input_file_id=asked.input_file_id,
        output_kept_seconds=int(asked.output_kept.total_seconds()),
        created_at=now,
        expires_at=now + COMPLETES_IN,
        total=look.total,
    )


def _failed(principal: Principal, asked: Asked, look: Look) -> Batch:
    """Its error file says the same as `errors`, a line for each."""
    batch = _new(principal, asked, look)
    batch.status, batch.ended_at = Status.FAILED, timezone.now()
    batch.total = 0
    batch.errors = [fault.body() for fault in look.faults]
    batch.error_file_id = new_file_id()
    content = b"".join(
        msgspec.json.encode({"line": fault.line, "custom_id": None, "response": None, "error": fault.body()}) + b"\n"
        for fault in look.faults
    )
    put_file(batch.tenant_id, batch.error_file_id, content)
    File.objects.create(
        id=batch.error_file_id,
        tenant_id=batch.tenant_id,
        key_id=batch.key_id,
        purpose=Purpose.BATCH_OUTPUT,
        filename=f"{batch.id}_error.jsonl",
        size=len(content),
        expires_at=timezone.now() + asked.output_kept,
    )
    return _saved(batch)


def _reserved(principal: Principal, asked: Asked, look: Look) -> Batch:
    batch = _new(principal, asked, look)
    batch.reserved = look.amount
    hold = reserve_batch(
        batch_id=batch.id,
        tenant_id=batch.tenant_id,
        key_id=batch.key_id,
        tokens=look.tokens,
        amount=look.amount,
        ttl_seconds=_HOLD_SECONDS,
    )
    run_sync(hold, tenant=batch.tenant_id)
    enqueue("batches.work")
    return _saved(batch)


def _saved(batch: Batch) -> Batch:
    batch.save(force_insert=True)
    batch.refresh_from_db()
    return batch
