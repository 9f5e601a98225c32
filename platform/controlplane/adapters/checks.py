"""The check of an uploaded version: read its real files, then have the engine try it, or say everything that is wrong.

Idempotent, and safe to run twice at once: the outcome is one conditional update, made under the version's lock.
"""

import logging
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.objects import lock_digest, publish_files, uri_of
from controlplane.adapters.sandbox import Checked, CheckKilled, read_adapter
from controlplane.adapters.staging import drop_staging, staging_folder
from controlplane.adapters.states import State, sources_of
from controlplane.adapters.uploads import announce
from controlplane.celery import enqueue
from engine.adapters.format import AdapterRefused, BaseShape, Problem
from tenants.audit import record_audit
from tenants.scope import ALL_TENANTS, tenant_scope

log = logging.getLogger(__name__)
MAX_ATTEMPTS: Final = 5
STUCK_AFTER: Final = timedelta(seconds=60)
TRY_ADAPTER: Final = "inference.try_adapter"  # above us, so known by its name
_CRASHED: Final = Problem(
    code="check_failed",
    where="the upload",
    found=f"{MAX_ATTEMPTS} checks that did not end",
    expected="a check that ends",
    remedy="Save the adapter again with PEFT's save_pretrained and upload that; if it stays so, tell the operator.",
)


def check_version(version_id: str) -> None:
    """Bring a version that is `checking` and not yet read to its trial, or to `rejected`. Any other is left alone."""
    BaseShape.from_config_file(settings.MODEL_DIR)  # first: a base model that is away is no attempt
    version = _begin(version_id)
    if version is None:
        return
    if version.check_attempts > MAX_ATTEMPTS:
        log.error("version %s: given up after %d checks", version.id, MAX_ATTEMPTS)
        reject(version, (_CRASHED,))
        return
    try:
        checked = read_adapter(staging_folder(version_id))
    except AdapterRefused as refused:
        reject(version, refused.problems)
    except CheckKilled:
        log.warning("version %s: its check was killed; it is tried again", version.id)
    else:
        _publish(version, checked)


def _begin(version_id: str) -> AdapterVersion | None:
    """Counts the attempt first: a check that kills its worker must not be tried for ever."""
    with tenant_scope(ALL_TENANTS):
        checking = AdapterVersion.objects.filter(id=version_id, state=State.CHECKING, digest=None)
        checking.update(check_attempts=F("check_attempts") + 1, state_at=timezone.now())
        return checking.select_related("tenant", "adapter").first()


def leave_checking(version: AdapterVersion, state: State, **fields: Any) -> bool:
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
    leave_checking(version, State.REJECTED, report=report)


@transaction.atomic
def _publish(version: AdapterVersion, checked: Checked) -> None:
    """Published inside the transaction: a row has a digest only where the files lie, and a deletion waits."""
    lock_digest(checked.digest)
    with tenant_scope(version.tenant_id):
        is_ours = AdapterVersion.objects.filter(id=version.id, state=State.CHECKING, digest=None).update(
            digest=checked.digest,
            rank=checked.rank,
            target_modules=list(checked.target_modules),
            invocation=list(checked.invocation),
            uri=uri_of(checked.digest),
            check_attempts=0,
            state_at=timezone.now(),
            report={"problems": [], "summary": "The files are right: the engine is to try the adapter."},
        )
    if is_ours:
        publish_files(staging_folder(version.id), checked.digest)
        transaction.on_commit(lambda: drop_staging(version.id))
        enqueue(TRY_ADAPTER, version.id)


def resume_checks() -> int:
    """Send again the checks and trials that nobody ended (a worker, the broker or the engine went away); how many."""
    now = timezone.now()
    with tenant_scope(ALL_TENANTS), transaction.atomic():
        stuck = AdapterVersion.objects.filter(state=State.CHECKING, state_at__lt=now - STUCK_AFTER)
        found = list(stuck.select_for_update(skip_locked=True).values_list("id", "digest")[:100])
        # So that each is sent once a minute, not with every beat, while the queue is long.
        AdapterVersion.objects.filter(id__in=[version_id for version_id, _ in found]).update(state_at=now)
        for version_id, digest in found:
            enqueue(TRY_ADAPTER if digest else "adapters.check_version", version_id)
    return len(found)
