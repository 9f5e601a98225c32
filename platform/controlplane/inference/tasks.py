"""Celery: the journal is read every two seconds (settings.CELERY_BEAT_SCHEDULE)."""

import logging

from django.conf import settings

from controlplane.celery import app
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal as ingest

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
