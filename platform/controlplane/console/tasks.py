"""Celery: links on their way, and sessions that are over."""

from controlplane.celery import app
from controlplane.console.reset_mail import mail_reset as mail
from tenants.sessions import SessionStore


@app.task(name="console.mail_reset")  # type: ignore[untyped-decorator]  # celery has no types
def mail_reset(user_id: str) -> None:
    mail(user_id)


@app.task(name="console.sweep_sessions")  # type: ignore[untyped-decorator]  # celery has no types
def sweep_sessions() -> None:
    SessionStore.clear_expired()
