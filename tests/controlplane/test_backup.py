"""The drill of docs/operations.md: two tenants' data goes into a backup and comes back elsewhere, all or nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from psycopg import sql

from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.objects import uri_of
from controlplane.adapters.states import State
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import Discrepancy, GrantKind, UsageEvent
from controlplane.embedded.backup.database import Database
from controlplane.inference.books import check_books
from tenants.key_services import issue_key
from tenants.permissions import SCOPES
from tenants.sql import run_sync
from tests.controlplane.books.conftest import engine
from tests.controlplane.books.journal import HOLD, write
from tests.controlplane.conftest import with_key
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.money import BASE, ROOT, Customer, D, customer_named

__all__ = ["engine"]

DIGEST = "d" * 64
SUMS = "SELECT tenant_id, account_id, count(*), sum(amount) FROM billing_ledgerentry GROUP BY 1, 2 ORDER BY 1, 2"
CATALOGUE = {  # who may do what
    "rights": """SELECT relname, relkind::text, relrowsecurity, relforcerowsecurity,
        (SELECT array_agg(each::text ORDER BY each::text) FROM unnest(relacl) each)
        FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1""",
    "policies": "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies ORDER BY 1, 2",
    "triggers": """SELECT tgrelid::regclass::text, tgname, tgenabled::text FROM pg_trigger
        WHERE NOT tgisinternal ORDER BY 1, 2""",
}


def ask(query: str) -> list[Any]:
    with Database.of(connection.settings_dict).connect() as conn:
        found = conn.execute(query)
        return found.fetchall() if found.description else []


def rows() -> dict[str, int]:
    tables = [name for (name,) in ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    return {table: ask(f"SELECT count(*) FROM {table}")[0][0] for table in tables}  # our own names


@dataclass
class Kept:
    """A home and a database with two tenants' data, and a backup of them. key: of acme, raw."""

    acme: Customer
    key: str
    folder: Path


@pytest.fixture
def kept(transactional_db: None, engine: FakeEngine, tmp_path: Path) -> Iterator[Kept]:
    home = tmp_path / "home"
    with override_settings(HOME=home, OBJECTS_DIR=home / "objects", ENGINE_URL=engine.url):
        yield _made(engine, tmp_path)


def _made(engine: FakeEngine, tmp_path: Path) -> Kept:
    acme, globex = customer_named("acme"), customer_named("globex")
    for customer, name in ((acme, "req_1"), (acme, "req_2"), (globex, "req_3")):
        customer.serve(name)
        write(engine, customer, name)
        grant_credit(tenant=customer.tenant, amount=D("1.5"), kind=GrantKind.PROMO, actor="usr")
    check_books(engine.url)
    _add_adapter(acme)
    journal = tmp_path / "home" / "engine" / "journal"
    journal.mkdir(parents=True)
    for name in ("engine_id", "open.log", "ended.log"):
        (journal / name).write_text(name)
    _, key = issue_key(tenant=acme.tenant, name="program", scopes=SCOPES, actor=None)
    call_command("backup", str(tmp_path / "backups" / "one"))
    return Kept(acme, key, tmp_path / "backups" / "one")


def _add_adapter(customer: Customer) -> None:
    path = Path(settings.OBJECTS_DIR) / "adapters" / DIGEST / "adapter_model.safetensors"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"weights")
    adapter = Adapter.objects.create(tenant=customer.tenant, name="pirate", base_model=BASE)
    version = AdapterVersion.objects.create(
        tenant=customer.tenant, adapter=adapter, number=1, state=State.READY, digest=DIGEST, rank=8,
        uri=uri_of(DIGEST), size_bytes=7, ready_at=timezone.now(),
    )  # fmt: skip
    AliasSplit.objects.create(adapter=adapter, version=version, weight=100)


@contextmanager
def elsewhere(home: Path) -> Iterator[None]:
    """Another home and a new database of the same server, for as long as this lasts."""
    there, before = "veneer_restored", connection.settings_dict["NAME"]
    owner = Database.of({**connection.settings_dict, "NAME": "postgres"})
    _administer(owner, "DROP DATABASE IF EXISTS {} WITH (FORCE)", there)
    _administer(owner, "CREATE DATABASE {}", there)
    _switch(there)
    try:
        with override_settings(HOME=home, OBJECTS_DIR=home / "objects"):
            yield
    finally:
        _switch(before)
        _administer(owner, "DROP DATABASE {} WITH (FORCE)", there)


def _administer(owner: Database, statement: str, name: str) -> None:
    with psycopg.connect(
        host=owner.host, port=owner.port, user=owner.user, password=owner.password, dbname=owner.name, autocommit=True
    ) as conn:
        conn.execute(sql.SQL(statement).format(sql.Identifier(name)))


def _switch(name: str) -> None:
    connection.close()
    connection.close_pool()
    connection.settings_dict["NAME"] = name


def test_what_was_backed_up_comes_back(kept: Kept, engine: FakeEngine, tmp_path: Path) -> None:
    before = {"rows": rows(), "sums": ask(SUMS)} | {name: ask(query) for name, query in CATALOGUE.items()}
    assert len({tenant for tenant, *_ in before["sums"]}) == 2
    with elsewhere(tmp_path / "new"):
        call_command("restore", str(kept.folder))
        after = {"rows": rows(), "sums": ask(SUMS)} | {name: ask(query) for name, query in CATALOGUE.items()}
        assert after == before
        report = check_books(engine.url)
        assert report.is_balanced, report
        status, found = with_key(kept.key).get("adapters")
        assert (status, [each["name"] for each in found["data"]]) == (200, ["pirate"])
        [version] = AdapterVersion.objects.all()
        assert version.uri == (tmp_path / "new" / "objects" / "adapters" / DIGEST).as_uri()
        assert (tmp_path / "new/objects/adapters" / DIGEST / "adapter_model.safetensors").read_bytes() == b"weights"
        assert (tmp_path / "new/engine/journal/ended.log").read_text() == "ended.log"
        assert kept.acme.serve("req_4") > 0, "the books go on"


def test_an_owner_held_to_the_policies_restores_and_backs_up_all_rows(kept: Kept, tmp_path: Path) -> None:
    manifest = json.loads((kept.folder / "manifest.json").read_text())
    with elsewhere(tmp_path / "new"), a_plain_owner():
        assert ask("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user") == [(False,)]
        call_command("restore", str(kept.folder))
        call_command("backup", str(tmp_path / "again"))
        assert ask("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'") == [("plain_owner",)]
    again = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert again["rows"] == manifest["rows"]
    assert manifest["rows"]["billing_usageevent"] == 3


@contextmanager
def a_plain_owner(*, with_roles: bool = True) -> Iterator[None]:
    """Of the database that is in use, for as long as this lasts: as docs/operator.md asks for."""
    before = connection.settings_dict["OWNER"]
    name = connection.settings_dict["NAME"]
    ask(f"CREATE ROLE plain_owner LOGIN PASSWORD 'plain'; ALTER DATABASE {name} OWNER TO plain_owner")
    if with_roles:
        ask("GRANT veneer_app, veneer_operator TO plain_owner WITH ADMIN OPTION")
    connection.settings_dict["OWNER"] = {**before, "USER": "plain_owner", "PASSWORD": "plain"}
    try:
        yield
    finally:
        connection.settings_dict["OWNER"] = before
        ask("REASSIGN OWNED BY plain_owner TO CURRENT_USER; DROP OWNED BY plain_owner; DROP ROLE plain_owner")


def test_a_home_whose_stack_stands_brings_its_own_database(kept: Kept, tmp_path: Path) -> None:
    manifest = json.loads((kept.folder / "manifest.json").read_text())
    _manage(tmp_path / "new", "restore", str(kept.folder))
    said = _manage(tmp_path / "new", "backup", str(tmp_path / "again"))
    assert "Keep it elsewhere, or back up with --with-secrets" in said
    again = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert again["rows"] == manifest["rows"]
    assert (tmp_path / "new/engine/journal/ended.log").read_text() == "ended.log"


def _manage(home: Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if "URL" not in name} | {"VENEER_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_ran_since_is_taken_from_the_journal(kept: Kept, engine: FakeEngine) -> None:
    """What was held at the backup is billed, what began after it is a discrepancy with all that the engine knows."""
    run_sync(kept.acme.reserve("req_open", **HOLD))
    folder = kept.folder.with_name("two")
    call_command("backup", str(folder))
    kept.acme.serve("req_late")
    for name in ("req_open", "req_late"):
        write(engine, kept.acme, name)
    check_books(engine.url)
    with elsewhere(Path(settings.HOME)):
        call_command("restore", str(folder), only_database=True)
        check_books(engine.url)
        assert UsageEvent.objects.filter(request_id="req_open").count() == 1
        [found] = Discrepancy.objects.all()
        assert (found.request_id, found.kind) == ("req_late", "journal_without_hold")
        assert found.details["usage"]["completion_tokens"] == 3


def test_a_database_or_home_that_holds_something_is_left_alone(kept: Kept, tmp_path: Path) -> None:
    before = rows()
    with pytest.raises(CommandError, match="is not empty: name a new one in DATABASE_URL"):
        call_command("restore", str(kept.folder))
    assert rows() == before
    (tmp_path / "new" / "objects").mkdir(parents=True)
    (tmp_path / "new" / "objects" / "mine").write_text("x")
    with elsewhere(tmp_path / "new"):
        with pytest.raises(CommandError, match="objects is not empty: set VENEER_HOME"):
            call_command("restore", str(kept.folder))
        assert rows() == {}


@pytest.mark.parametrize("name", ["database.dump", f"objects/adapters/{DIGEST}/adapter_model.safetensors"])
def test_a_changed_file_is_refused(kept: Kept, tmp_path: Path, name: str) -> None:
    path = kept.folder / name
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with elsewhere(tmp_path / "new"):
        with pytest.raises(CommandError, match=rf"{Path(name).name} is not what was backed up \(its checksum"):
            call_command("restore", str(kept.folder))
        path.unlink()
        with pytest.raises(CommandError, match="it is missing"):
            call_command("restore", str(kept.folder))
        assert rows() == {}
    assert not (tmp_path / "new").exists()


def test_an_owner_that_may_not_make_the_roles_is_told_what_to_run(kept: Kept, tmp_path: Path) -> None:
    with elsewhere(tmp_path / "new"), a_plain_owner(with_roles=False):
        with pytest.raises(CommandError, match="GRANT veneer_app, veneer_operator TO plain_owner; then"):
            call_command("restore", str(kept.folder))
        assert rows() == {}
    assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file()]


def test_a_newer_schema_and_lost_rows_are_refused(kept: Kept, tmp_path: Path) -> None:
    path = kept.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "migrations": [*manifest["migrations"], "billing.9999_later"]}))
    with elsewhere(tmp_path / "new"):
        with pytest.raises(CommandError, match=r"billing.9999_later, which this Veneer does not know: restore it with"):
            call_command("restore", str(kept.folder))
        assert rows() == {}
        lost = {**manifest["rows"], "tenants_tenant": 3}
        path.write_text(json.dumps({**manifest, "rows": lost}))
        with pytest.raises(CommandError, match="tenants_tenant came back with 2 of 3 rows"):
            call_command("restore", str(kept.folder))
    assert not list((tmp_path / "new").rglob("*.safetensors"))


def test_a_backup_is_whole_or_not_there(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="exists: name a folder that does not"):
        call_command("backup", str(kept.folder))
    monkeypatch.setattr("controlplane.embedded.backup.saving.dump", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(CommandError, match="full"):
        call_command("backup", str(kept.folder.with_name("two")))
    assert list(kept.folder.parent.iterdir()) == [kept.folder]
    with pytest.raises(CommandError, match=r"is no backup \(manifest.json"):
        call_command("restore", str(kept.folder.parent))


def test_secrets_go_along_only_when_asked(kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pepper = settings.KEY_PEPPERS[1].hex()
    found = [path for path in kept.folder.rglob("*") if path.is_file()]
    assert found
    assert not any(pepper.encode() in path.read_bytes() for path in found)
    call_command("backup", str(tmp_path / "with"), with_secrets=True)
    assert "WITH SECRETS" in capsys.readouterr().out
    assert (tmp_path / "with").stat().st_mode & 0o077 == 0
    with elsewhere(tmp_path / "new"):
        call_command("restore", str(tmp_path / "with"))
    held = json.loads((tmp_path / "new" / "secrets.json").read_text())
    assert held == {"VENEER_SECRET_KEY": settings.SECRET_KEY, "VENEER_KEY_PEPPERS": f"1:{pepper}"}
    assert pepper not in capsys.readouterr().out
