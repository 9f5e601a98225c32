"""Celery: what money does by itself (settings.CELERY_BEAT_SCHEDULE)."""

from controlplane.billing.alert_mail import mail_alerts as mail
from controlplane.billing.anomaly import find_unusual_spend as look_at_spend
from controlplane.billing.closing import close_what_is_over
from controlplane.billing.delivery import new_fetcher, send_due
from controlplane.billing.reconcile import reconcile as compare_hours
from controlplane.billing.rollup import roll_up as sum_up
from controlplane.celery import app


@app.task(name="billing.close_periods")  # type: ignore[untyped-decorator]  # celery has no types
def close_periods() -> None:
    close_what_is_over()


@app.task(name="billing.mail_alerts")  # type: ignore[untyped-decorator]  # celery has no types
def mail_alerts() -> None:
    mail()


@app.task(name="billing.send_webhooks")  # type: ignore[untyped-decorator]  # celery has no types
def send_webhooks() -> None:
    send_due(new_fetcher())


@app.task(name="billing.find_unusual_spend")  # type: ignore[untyped-decorator]  # celery has no types
def find_unusual_spend() -> None:
    look_at_spend()


@app.task(name="billing.roll_up")  # type: ignore[untyped-decorator]  # celery has no types
def roll_up() -> None:
    sum_up()


@app.task(name="billing.reconcile")  # type: ignore[untyped-decorator]  # celery has no types
def reconcile() -> None:
    compare_hours()
