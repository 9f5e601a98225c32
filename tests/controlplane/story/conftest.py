"""A short story, told once for all tests here: a database with it, and an engine that tries its adapters."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count, Sum
from django.test import override_settings
from django.utils import timezone

from controlplane.adapters import checks
from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.sandbox import Checked, read_adapter
from controlplane.billing.models import Alert, Invoice, UsageEvent
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.month.telling import Told, story_days, tell
from controlplane.embedded.month.workers import Workers
from controlplane.embedded.options import DEMO_MODEL
from controlplane.inference.books import Report, check_records, newest_event
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.evaluations import run_evaluation
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.trials import try_adapter
from controlplane.quotas.models import Hold, Quota
from engine.adapters.format import AdapterRefused
from tenants.models import User
from tenants.postgres.base import as_owner
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.fake_engine import FakeEngine, Script
from tests.engine.conftest import base_model

__all__ = ["base_model"]
SEED = 7
SCALE = 0.015


@dataclass(frozen=True)
class AtOnce(Workers):
    """Whoever sends work does it."""

    engine: EngineCalls

    def check(self, version_id: str) -> None:
        checks.check_version(version_id)
        try_adapter(self.engine, version_id)

    def evaluate(self, evaluation_id: str) -> None:
        run_evaluation(self.engine, evaluation_id)


@dataclass(frozen=True)
class Stage:
    """Where the story is told, and until when."""

    folder: Path
    engine: FakeEngine
    now: datetime

    def tell(self) -> Told:
        operator = User.objects.create(email="operator@veneer.example", is_operator=True)
        credentials = Credentials(self.folder / "secrets.json")
        days = story_days(SEED, self.now, days=None, scale=SCALE)
        with EngineCalls(self.engine.url) as engine:
            told = tell(
                days, operator=operator, credentials=credentials, served=engine.describe(), workers=AtOnce(engine)
            )
            with tenant_scope(ALL_TENANTS):
                ingest_journal(engine)  # as the worker does
        return told


@pytest.fixture(scope="module")
def stage(base_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("story")
    engine = FakeEngine(f"ipc://{folder}/engine.sock", base_model=DEMO_MODEL, adapter_shift=0.1).start()
    engine.script = Script(device_ns=40_000_000)
    places = {"OBJECTS_DIR": folder / "objects", "STAGING_DIR": folder / "staging", "MODEL_DIR": base_model}
    quick = {"PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"]}
    with override_settings(**places, **quick, ENGINE_URL=engine.url), pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "read_adapter", read_once())
        yield Stage(folder, engine, timezone.now())
    engine.kill()


def read_once() -> Callable[[Path], Checked]:
    """The real check, of each folder's content once."""
    known: dict[str, Checked | AdapterRefused] = {}

    def read(folder: Path) -> Checked:
        content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
        digest = hashlib.sha256(content).hexdigest()
        if digest not in known:
            try:
                known[digest] = read_adapter(folder)
            except AdapterRefused as refused:
                known[digest] = refused
        found = known[digest]
        if isinstance(found, AdapterRefused):
            raise found
        return found

    return read


@dataclass(frozen=True)
class Twice:
    """The story, told on an empty database, and again on another: what is there is the second's."""

    told: Told
    first: list[Any]
    second: list[Any]
    report: Report


@pytest.fixture(scope="module")
def twice(stage: Stage, django_db_setup: None, django_db_blocker: Any) -> Iterator[Twice]:
    """Committed, as it really is, and gone when the module's tests are done. They are marked django_db: what they
    change is rolled back."""
    with django_db_blocker.unblock():
        stage.tell()
        first = figures()
        empty_tables()
        stage.engine.journal.clear()
        told = stage.tell()
        yield Twice(told, first, figures(), check_records(newest_event()))
        empty_tables()


def figures() -> list[Any]:
    """All that people are shown as numbers, by names that are the same wherever the story is told."""
    with tenant_scope(ALL_TENANTS):
        summed = ("prompt_tokens", "cached_tokens", "completion_tokens", "amount", "earned_amount")
        events = UsageEvent.objects.values_list("tenant__slug", "key__name", "model", "finish_reason")
        by_key = events.annotate(n=Count("id"), **{name: Sum(name) for name in summed})
        holds = Hold.objects.values_list("tenant__slug", "key__name", "state").annotate(n=Count("pk"))
        quotas = Quota.objects.values_list("tenant__slug", "level", "budget", "spent", "day_tokens", "month_tokens")
        invoices = Invoice.objects.values_list("tenant__slug", "statement__period_end", "total", "subtotal", "tax")
        states = AdapterVersion.objects.values_list("adapter__name", "number", "state")
        alerts = Alert.objects.values_list("tenant__slug", "kind").annotate(n=Count("id"))
        return [sorted(map(str, rows)) for rows in (by_key, holds, quotas, invoices, states, alerts)]


def empty_tables() -> None:
    kept = {"django_migrations", "django_content_type"}
    names = sorted(set(connection.introspection.table_names()) - kept)
    with as_owner("default"), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(names)} CASCADE")
