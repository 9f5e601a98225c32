"""Celery's way in: ids in, one service called."""

from controlplane.adapters import checks, deletion, evaluation_runs, evaluations, imports
from controlplane.celery import app


@app.task(name="adapters.check_version")  # type: ignore[untyped-decorator]  # celery has no types
def check_version(version_id: str) -> None:
    checks.check_version(version_id)


@app.task(name="adapters.resume_checks")  # type: ignore[untyped-decorator]  # celery has no types
def resume_checks() -> None:
    checks.resume_checks()


@app.task(name="adapters.fetch_version")  # type: ignore[untyped-decorator]  # celery has no types
def fetch_version(version_id: str) -> None:
    imports.fetch_version(version_id)


@app.task(name="adapters.resume_imports")  # type: ignore[untyped-decorator]  # celery has no types
def resume_imports() -> None:
    imports.resume_imports()


@app.task(name="adapters.resume_evaluations")  # type: ignore[untyped-decorator]  # celery has no types
def resume_evaluations() -> None:
    evaluation_runs.resume_evaluations()


@app.task(name="adapters.sweep")  # type: ignore[untyped-decorator]  # celery has no types
def sweep() -> None:
    deletion.expire_uploads()
    deletion.expire_rejected()
    deletion.remove_drained_files()
    evaluations.expire_evaluations()
