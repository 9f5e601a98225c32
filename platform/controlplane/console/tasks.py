"""Celery: mails on their way, and what is over: sessions, and answers kept for idempotency keys."""

from controlplane.celery import app
from controlplane.console.notice_mail import mail_notices as mail_notices_now
from controlplane.console.reset_mail import mail_reset as mail
from tenants.answers import forget_answers
from tenants.sessions import SessionStore


@app.task(name="console.mail_reset")  # type: ignore[untyped-decorator]  # celery has no types
def mail_reset(user_id: str) -> None:
    mail(user_id)


@app.task(name="console.sweep_sessions")  # type: ignore[untyped-decorator]  # celery has no types
def sweep_sessions() -> None:
    SessionStore.clear_expired()


@app.task(name="console.mail_notices")  # type: ignore[untyped-decorator]  # celery has no types
def mail_notices() -> None:
    mail_notices_now()


@app.task(name="console.sweep_answers")  # type: ignore[untyped-decorator]  # celery has no types
def sweep_answers() -> None:
    forget_answers()
