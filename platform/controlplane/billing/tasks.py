"""Celery: periods close by themselves (settings.CELERY_BEAT_SCHEDULE)."""

from controlplane.billing.closing import close_what_is_over
from controlplane.celery import app


@app.task(name="billing.close_periods")  # type: ignore[untyped-decorator]  # celery has no types
def close_periods() -> None:
    close_what_is_over()
