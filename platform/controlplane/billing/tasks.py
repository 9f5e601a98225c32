"""Celery: periods close and credit expires by themselves (settings.CELERY_BEAT_SCHEDULE)."""

from controlplane.billing.closing import close_what_is_over
from controlplane.billing.credit import expire_credit as expire
from controlplane.celery import app


@app.task(name="billing.close_periods")  # type: ignore[untyped-decorator]  # celery has no types
def close_periods() -> None:
    close_what_is_over()


@app.task(name="billing.expire_credit")  # type: ignore[untyped-decorator]  # celery has no types
def expire_credit() -> None:
    expire()
