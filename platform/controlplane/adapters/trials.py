"""The engine's trial of an adapter whose files are right: what it is asked to try, and what follows from its answer.

The trial itself is above us (`inference.trials`), where the engine can be asked.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from controlplane.adapters.aliases import follow_newest
from controlplane.adapters.checks import leave_checking, reject
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.states import State
from engine.adapters.format import Problem
from tenants.scope import ALL_TENANTS, tenant_scope

# Of trials in which the engine was lost: an adapter that ends engines must not do so for ever.
MAX_TRIALS: Final = 3


@dataclass(frozen=True)
class Candidate:
    """What to try. invocation: tokens without which the adapter is off; empty: it is always on. target_modules: short
    names of what it trains."""

    version_id: str
    base_model: str
    uri: str
    digest: str
    rank: int
    invocation: tuple[int, ...]
    target_modules: tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """The same short prompt with and without the adapter. largest_difference: of any log-probability (natural) that
    both answers have; where the two agree in all of them, that of the first other tokens that showed one; 0: none of
    those tried did."""

    prompt_tokens: int
    largest_difference: float
    text: str
    base_text: str


def candidate(version_id: str) -> Candidate | None:
    """None where the version waits for no trial (any more)."""
    with tenant_scope(ALL_TENANTS):
        found = _waiting(version_id).select_related("adapter").first()
    if found is None:
        return None
    uri, digest, rank = found.uri, found.digest, found.rank
    assert uri is not None
    assert digest is not None
    assert rank is not None
    names = tuple(found.target_modules)
    return Candidate(found.id, found.adapter.base_model, uri, digest, rank, tuple(found.invocation), names)


def _waiting(version_id: str) -> Any:
    return AdapterVersion.objects.filter(id=version_id, state=State.CHECKING, digest__isnull=False)


def begin_trial(version_id: str) -> bool:
    """Counts the attempt first: an adapter that ends the engine is found by that. False: it has had its trials, and is
    rejected."""
    with tenant_scope(ALL_TENANTS):
        _waiting(version_id).update(check_attempts=F("check_attempts") + 1, state_at=timezone.now())
        version = _waiting(version_id).select_related("tenant", "adapter").first()
    if version is None:
        return False
    if version.check_attempts <= MAX_TRIALS:
        return True
    found = f"{MAX_TRIALS} trials in which the engine was lost"
    refuse_trial(version_id, "trial_failed", found, "an adapter that can be served", "Train or save the adapter again.")
    return False


def postpone_trial(version_id: str) -> None:
    """The engine has no room just now: that is nobody's attempt."""
    with tenant_scope(ALL_TENANTS):
        _waiting(version_id).update(check_attempts=0)


def refuse_trial(version_id: str, code: str, found: str, expected: str, remedy: str) -> None:
    with tenant_scope(ALL_TENANTS):
        version = _waiting(version_id).select_related("tenant", "adapter").first()
    if version:
        reject(version, (Problem(code, "the engine's trial", found, expected, remedy),))


@transaction.atomic
def accept_trial(version_id: str, trial: Trial) -> None:
    """`ready` from now on."""
    with tenant_scope(ALL_TENANTS):
        version = _waiting(version_id).select_related("tenant", "adapter").first()
    if version is None:
        return
    summary = f"Ready: rank {version.rank} on {', '.join(version.target_modules)}."
    if not trial.largest_difference and trial.text == trial.base_text:
        summary += " It answered all that the trial had time for as the base model does: try it on tokens it trained."
    report = {"problems": [], "summary": summary, "trial": asdict(trial)}
    if leave_checking(version, State.READY, ready_at=timezone.now(), report=report):
        follow_newest(version.adapter)
