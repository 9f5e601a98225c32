"""Celery: the journal is read and pins are told every few seconds (settings.CELERY_BEAT_SCHEDULE); adapters are tried
when they are sent."""

import logging

from django.conf import settings

from controlplane.celery import app
from controlplane.inference.alerting import find_alerts as find
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.evaluations import run_evaluation as run_prompts
from controlplane.inference.ingest import ingest_journal as ingest
from controlplane.inference.pins import sync_pins as tell_pins
from controlplane.inference.trials import try_adapter as try_version

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 1.5


@app.task(name="inference.ingest_journal")  # type: ignore[untyped-decorator]  # celery has no types
def ingest_journal() -> None:
    """An engine that is away has nothing to tell; its journal is read when it is back."""
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            ingest(engine)
    except EngineGone as gone:
        log.info("journal not read: %s", gone)


@app.task(name="inference.sync_pins")  # type: ignore[untyped-decorator]  # celery has no types
def sync_pins() -> None:
    """An engine that is away is told when it is back."""
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            tell_pins(engine)
    except EngineGone as gone:
        log.info("pins not told: %s", gone)


@app.task(name="inference.try_adapter")  # type: ignore[untyped-decorator]  # celery has no types
def try_adapter(version_id: str) -> None:
    """While the engine is away the version waits: `adapters.resume_checks` sends it again once a minute."""
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            try_version(engine, version_id)
    except EngineGone as gone:
        log.info("version %s not tried yet: %s", version_id, gone)


@app.task(name="inference.run_evaluation")  # type: ignore[untyped-decorator]  # celery has no types
def run_evaluation(evaluation_id: str) -> None:
    """While the engine is away it waits: `adapters.resume_evaluations` sends it again."""
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            run_prompts(engine, evaluation_id)
    except EngineGone as gone:
        log.info("evaluation %s waits: %s", evaluation_id, gone)


@app.task(name="inference.find_alerts")  # type: ignore[untyped-decorator]  # celery has no types
def find_alerts() -> None:
    find()
