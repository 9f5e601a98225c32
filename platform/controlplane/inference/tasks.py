"""Celery: the journal is read and pins are told every few seconds (settings.CELERY_BEAT_SCHEDULE); adapters are tried
when they are sent."""

import logging
from collections.abc import Callable

from django.conf import settings

from controlplane.billing.credit import expire_credit as expire
from controlplane.celery import app
from controlplane.inference.alerting import find_alerts as find
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.evaluations import run_evaluation as run_prompts
from controlplane.inference.ingest import ingest_journal as ingest
from controlplane.inference.pins import sync_pins as tell_pins
from controlplane.inference.trials import try_adapter as try_version
from controlplane.quotas.queries import quota_state
from tenants.sql import run_sync

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 1.5


@app.task(name="inference.ingest_journal")  # type: ignore[untyped-decorator]  # celery has no types
def ingest_journal() -> None:
    """An engine that is away has nothing to tell; its journal is read when it is back."""
    _ask(ingest, "journal not read")


@app.task(name="inference.sync_pins")  # type: ignore[untyped-decorator]  # celery has no types
def sync_pins() -> None:
    """An engine that is away is told when it is back."""
    _ask(tell_pins, "pins not told")


@app.task(name="inference.try_adapter")  # type: ignore[untyped-decorator]  # celery has no types
def try_adapter(version_id: str) -> None:
    """While the engine is away the version waits: `adapters.resume_checks` sends it again once a minute."""
    _ask(lambda engine: try_version(engine, version_id), f"version {version_id} not tried yet")


@app.task(name="inference.run_evaluation")  # type: ignore[untyped-decorator]  # celery has no types
def run_evaluation(evaluation_id: str) -> None:
    """While the engine is away it waits: `adapters.resume_evaluations` sends it again."""
    _ask(lambda engine: run_prompts(engine, evaluation_id), f"evaluation {evaluation_id} waits")


@app.task(name="inference.find_alerts")  # type: ignore[untyped-decorator]  # celery has no types
def find_alerts() -> None:
    find()


@app.task(name="inference.expire_credit")  # type: ignore[untyped-decorator]  # celery has no types
def expire_credit() -> None:
    """What requests that run were let in on is kept for them."""
    expire(lambda tenant_id: run_sync(quota_state(tenant_id=tenant_id)).held)


def _ask(work: Callable[[EngineCalls], object], otherwise: str) -> None:
    """otherwise: what the log says came of it while the engine is away."""
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            work(engine)
    except EngineGone as gone:
        log.info("%s: %s", otherwise, gone)
