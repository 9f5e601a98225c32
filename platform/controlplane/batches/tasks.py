"""Celery: whoever has nothing to do works off the batches (settings.CELERY_BEAT_SCHEDULE), in a queue of its own."""

import asyncio

from celery.worker import state

from controlplane.batches.files import remove_expired
from controlplane.batches.lost import give_back_lost
from controlplane.batches.work import work as work_off
from controlplane.celery import app


@app.task(name="batches.work")  # type: ignore[untyped-decorator]  # celery has no types
def work() -> None:
    """Long: the broker sends it again meanwhile, which finds it at work and ends at once."""
    asyncio.run(work_off(lambda: state.should_stop is not None))


@app.task(name="batches.sweep")  # type: ignore[untyped-decorator]  # celery has no types
def sweep() -> None:
    remove_expired()
    give_back_lost()
