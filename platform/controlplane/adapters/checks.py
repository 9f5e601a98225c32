"""The check of an uploaded version: read its real files, then publish it or say everything that is wrong with it.

Idempotent, and safe to run twice at once: the outcome is one conditional update, made under the version's lock.
"""

import logging
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from controlplane.adapters.aliases import follow_newest
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.objects import publish_files, uri_of
from controlplane.adapters.staging import drop_staging, staging_folder
from controlplane.adapters.states import State, sources_of
from controlplane.adapters.uploads import announce
from controlplane.celery import enqueue
from engine.adapters.format import AdapterRefused, AdapterSpec, BaseShape, Limits, Problem, check_adapter
from tenants.audit import record_audit
from tenants.scope import ALL_TENANTS, tenant_scope

log = logging.getLogger(__name__)
MAX_ATTEMPTS: Final = 5
STUCK_AFTER: Final = timedelta(seconds=60)
_CRASHED: Final = Problem(
    code="check_failed",
    where="the upload",
    found=f"{MAX_ATTEMPTS} checks that did not end",
    expected="a check that ends",
    remedy="Save the adapter again with PEFT's save_pretrained and upload that; if it stays so, tell the operator.",
)


def check_version(version_id: str) -> None:
    """Bring a version that is `checking` to `ready` or `rejected`. Anything else is left alone."""
    base = BaseShape.from_config_file(settings.MODEL_DIR)  # first: a base model that is away is no attempt
    version = _begin(version_id)
    if version is None:
        return
    if version.check_attempts > MAX_ATTEMPTS:
        log.error("version %s: given up after %d checks", version.id, MAX_ATTEMPTS)
        reject(version, (_CRASHED,))
        return
    limits = Limits(settings.MAX_RANK, settings.MAX_ADAPTER_BYTES, settings.MAX_SAVED_BYTES)
    try:
        spec = check_adapter(staging_folder(version_id), base, limits)
    except AdapterRefused as refused:
        reject(version, refused.problems)
    else:
        _accept(version, spec)


def _begin(version_id: str) -> AdapterVersion | None:
    """Counts the attempt first: a check that kills its worker must not be tried for ever."""
    with tenant_scope(ALL_TENANTS):
        checking = AdapterVersion.objects.filter(id=version_id, state=State.CHECKING)
        checking.update(check_attempts=F("check_attempts") + 1, state_at=timezone.now())
        return checking.select_related("tenant", "adapter").first()


def _leave_checking(version: AdapterVersion, state: State, **fields: Any) -> bool:
    """The conditional update. False where another check, or a deletion, came first."""
    now = timezone.now()
    with tenant_scope(version.tenant_id):
        rows = AdapterVersion.objects.filter(id=version.id, state__in=sources_of(state))
        moved = rows.update(state=state, state_at=now, **fields)
    if moved:
        version.state = state
        record_audit(tenant=version.tenant, actor="system", action=f"version.{state}", target=version.id)
        announce(version)
        transaction.on_commit(lambda: drop_staging(version.id))
    return bool(moved)


@transaction.atomic
def reject(version: AdapterVersion, problems: tuple[Problem, ...]) -> None:
    count = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
    report = {"problems": [problem.as_dict() for problem in problems], "summary": f"Refused: {count} found."}
    _leave_checking(version, State.REJECTED, report=report)


@transaction.atomic
def _accept(version: AdapterVersion, spec: AdapterSpec) -> None:
    """Published inside the transaction: a row says `ready` only where the files lie, and a deletion waits."""
    lock_digest(spec.digest)
    modules = list(spec.target_modules)
    moved = _leave_checking(
        version,
        State.READY,
        ready_at=timezone.now(),
        digest=spec.digest,
        rank=spec.max_rank,
        target_modules=modules,
        uri=uri_of(spec.digest),
        report={"problems": [], "summary": f"Ready: rank {spec.max_rank} on {', '.join(modules)}."},
    )
    if moved:
        publish_files(staging_folder(version.id), spec.digest)
        follow_newest(version.adapter)


def lock_digest(digest: str) -> None:
    """Until the transaction ends, nobody else publishes or removes these files."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"adapters/{digest}"])


def resume_checks() -> int:
    """Send again the checks that nobody ended (a worker was killed, the broker lost them); how many there were."""
    now = timezone.now()
    with tenant_scope(ALL_TENANTS), transaction.atomic():
        stuck = AdapterVersion.objects.filter(state=State.CHECKING, state_at__lt=now - STUCK_AFTER)
        ids = list(stuck.select_for_update(skip_locked=True).values_list("id", flat=True)[:100])
        # So that each is sent once a minute, not with every beat, while the queue is long.
        AdapterVersion.objects.filter(id__in=ids).update(state_at=now)
        for version_id in ids:
            enqueue("adapters.check_version", version_id)
    return len(ids)
