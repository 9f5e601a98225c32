"""Celery: holds whose request died are ended every ten seconds (settings.CELERY_BEAT_SCHEDULE)."""

import logging

from controlplane.celery import app
from controlplane.quotas.services import expire_holds as sweep

log = logging.getLogger(__name__)


@app.task(name="quotas.expire_holds")  # type: ignore[untyped-decorator]  # celery has no types
def expire_holds() -> None:
    if expired := sweep():
        log.warning("%d holds expired: their requests ended without a word", expired)
