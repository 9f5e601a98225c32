"""check_books says that all is well only when it is, names what is not, and is right just after a crash."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from controlplane.billing.grants import grant_credit
from controlplane.billing.models import Discrepancy, GrantKind, UsageEvent
from controlplane.billing.services import record_usage
from controlplane.billing.statements import close_period
from controlplane.inference.books import Report, check_books
from controlplane.quotas.models import Hold
from tenants.postgres.base import as_owner
from tenants.sql import run_sync
from tests.controlplane.books.journal import HOLD, write
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.money import Customer, D, customer_named, everything, settle_hold

# Of what these tests have nothing of: those of mark-ups, payments and the sums of usage have.
ELSEWHERE = {
    "mark-ups are charged to whom they were set for, on the adapter they were set on",
    "each payment is in the books once, and back out of them as far as it went back",
    "usage that was summed up ahead is what its events come to",
}


def _broken(report: Report) -> set[str]:
    return {finding.name for finding in report.findings if finding.broken}


@pytest.fixture
def busy(acme: Customer, engine: FakeEngine) -> Customer:
    """Three settled requests of two tenants, a grant, a closed period and an open hold."""
    globex = customer_named("globex")
    acme.limit({"budget": D(1)})
    acme.limit({"budget": D(1)}, key=acme.key)
    for customer, name in ((acme, "req_1"), (acme, "req_2"), (globex, "req_3")):
        customer.serve(name)
        write(engine, customer, name)
    grant_credit(tenant=acme.tenant, amount=D("0.000001"), kind=GrantKind.PROMO, actor="usr")
    run_sync(record_usage(**acme.usage("req_1")))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenants_tenant SET created_at = '2026-01-01'")
    for customer in (acme, globex):
        customer.tenant.refresh_from_db()
        close_period(tenant=customer.tenant, actor="usr")
    run_sync(acme.reserve("req_open", **HOLD))
    return acme


def test_everything_holds(busy: Customer, engine: FakeEngine) -> None:
    report = check_books(engine.url)
    assert _broken(report) == set()
    assert report.is_balanced
    assert set(report.warnings.values()) == {0}
    assert [finding.number for finding in report.findings] == list(range(1, len(report.findings) + 1))
    checked = {finding.name: finding.checked for finding in report.findings}
    assert checked["each usage event has exactly one line in the engine's journal"] == 3
    assert checked["each ledger transaction has entries that sum to zero"] == 5
    assert {name for name, count in checked.items() if count == 0} == {"no discrepancy is open", *ELSEWHERE}


def test_nothing_at_all_is_balanced(transactional_db: None, engine: FakeEngine) -> None:
    assert check_books(engine.url).is_balanced


def test_after_a_crash_the_journal_is_read_first(acme: Customer, engine: FakeEngine) -> None:
    """The door died with these open: one was run by the engine, one never was and its time is over."""
    run_sync(acme.reserve("req_1", **HOLD))
    run_sync(acme.reserve("req_2", **HOLD))
    write(engine, acme, "req_1")
    everything(Hold).filter(request_id="req_2").update(expires_at=timezone.now() - timedelta(hours=1))
    assert check_books(engine.url).is_balanced
    assert (acme.hold("req_1").state, acme.hold("req_2").state) == ("settled", "expired")
    assert everything(UsageEvent).get().amount == acme.hold("req_1").settled_amount


def test_late_settlements_are_told_but_balance(acme: Customer, engine: FakeEngine) -> None:
    acme.limit({"budget": D("0.00001")})
    run_sync(acme.reserve("req_1", **HOLD))
    everything(Hold).update(expires_at=timezone.now() - timedelta(hours=1))
    run_sync(acme.reserve("req_2", **HOLD))
    write(engine, acme, "req_1")
    report = check_books(engine.url)
    assert _broken(report) == set()
    assert set(report.warnings.values()) == {1}
    assert everything(UsageEvent).get().late


def test_an_engine_that_is_away_is_a_failure(busy: Customer, engine: FakeEngine) -> None:
    engine.kill()
    report = check_books(engine.url)
    assert _broken(report) >= {"the engine's journal was read to its end"}
    assert "engine away" in report.findings[-1].note


# --- each kind of damage is found, by name -------------------------------------------------------------------------


@contextmanager
def _tampering(table: str):
    """What no program can do: the owner has turned triggers and foreign keys off."""
    with as_owner("default"), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        yield cursor
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")


QUOTAS = "each quota's spent, held, running and tokens of the day are the sums of its holds"
DAMAGE = [
    (
        "billing_ledgerentry",
        "UPDATE billing_ledgerentry SET amount = amount + 1 WHERE transaction_id = 'usage:req_1' AND amount > 0",
        {
            "each ledger transaction has entries that sum to zero",
            "the whole ledger sums to zero",
            "each tenant's receivable is its usage less the credit used",
            "each usage event has exactly one ledger transaction, of its amount",
            "what each tenant's quota says is owed is what its ledger says",
        },
    ),
    (
        "billing_usageevent",
        "UPDATE billing_usageevent SET amount = amount + 0.000000000001 WHERE request_id = 'req_3'",
        {
            "each tenant's receivable is its usage less the credit used",
            "each usage event has exactly one ledger transaction, of its amount",
            "each charge is its tokens at the pinned price, computed anew",
            "each usage event settled exactly one hold, for its amount",
            "each statement is the sum of its lines and of its events",
        },
    ),
    (
        "billing_usageevent",
        "UPDATE billing_usageevent SET device_ns = 1 WHERE request_id = 'req_3'",
        {"each line of the engine's journal has its usage event, with the same tokens"},
    ),
    (
        "billing_price",
        "UPDATE billing_price SET output = output + 1",
        {"each charge is its tokens at the pinned price, computed anew"},
    ),
    (
        "billing_statement",
        "UPDATE billing_statement SET total = total + 1, due = due + 1",
        {
            "each statement is the sum of its lines and of its events",
            "each invoice's lines and tax are its total, to the cent and exactly",
        },
    ),
    (
        "billing_invoice",
        "UPDATE billing_invoice SET subtotal = subtotal + 0.01, total = total + 0.01, carried_out = carried_out - 0.01",
        {"each invoice's lines and tax are its total, to the cent and exactly"},
    ),
    (
        "billing_invoice",
        "UPDATE billing_invoice SET number = 7 WHERE number = 2",
        {"invoices and credit notes are numbered without a gap"},
    ),
    (
        "billing_invoice",
        "UPDATE billing_invoice SET tenant_id = (SELECT id FROM tenants_tenant WHERE slug = 'globex') WHERE number = 1",
        {
            "keys, prices, accounts and statements belong to the tenant whose usage they carry",
            "each invoice's lines and tax are its total, to the cent and exactly",
        },
    ),
    (
        "billing_invoice",
        "DELETE FROM billing_invoice WHERE number = 2",
        {
            "each statement that comes to something has an invoice",
            "invoices and credit notes are numbered without a gap",
        },
    ),
    (
        "billing_statementline",
        "DELETE FROM billing_statementline",
        {"each statement is the sum of its lines and of its events"},
    ),
    (
        "billing_grant",
        "UPDATE billing_grant SET amount = amount + 1",
        {"each tenant's credit is its grants less the credit used, and not below zero"},
    ),
    (
        "billing_grantuse",
        "UPDATE billing_grantuse SET amount = amount + 1",
        {
            "each tenant's credit is its grants less the credit used, and not below zero",
            "no grant gives more than it holds, and each statement's credit is what grants gave",
        },
    ),
    (
        "billing_usageevent",
        "UPDATE billing_usageevent SET key_id = (SELECT id FROM tenants_apikey WHERE name = 'globex key') "
        "WHERE request_id = 'req_1'",
        {
            "keys, prices, accounts and statements belong to the tenant whose usage they carry",
            "each usage event settled exactly one hold, for its amount",
        },
    ),
    (
        "quotas_hold",
        "UPDATE quotas_hold SET key_id = (SELECT id FROM tenants_apikey WHERE name = 'globex key') "
        "WHERE request_id = 'req_open'",
        {
            "holds and quotas belong to the tenants of their keys",
            QUOTAS,
        },
    ),
    (
        "quotas_quota",
        "UPDATE quotas_quota SET spent = spent + 0.1 WHERE level = 2",
        {QUOTAS},
    ),
    (
        "quotas_hold",
        "DELETE FROM quotas_hold WHERE request_id = 'req_3'",
        {
            "each usage event settled exactly one hold, for its amount",
            QUOTAS,
        },
    ),
    (
        "quotas_hold",
        "UPDATE quotas_hold SET settled_at = now(), settled_amount = 0, settled_tokens = 0, ended_at = now(), "
        "state = 'settled' WHERE request_id = 'req_open'",
        {"each settled hold has its usage event", QUOTAS},
    ),
    (
        "billing_statementevent",
        "DELETE FROM billing_statementevent WHERE event_id = (SELECT min(event_id) FROM billing_statementevent)",
        {"each statement is the sum of its lines and of its events"},
    ),
    (
        "billing_discrepancy",
        "INSERT INTO billing_discrepancy (kind, request_id) VALUES ('usage_conflict', 'req_x')",
        {"no discrepancy is open"},
    ),
]


@pytest.mark.parametrize(
    "table, sql, expected", DAMAGE, ids=[f"{n}:{sql[:40]}" for n, (_, sql, _) in enumerate(DAMAGE)]
)
def test_damage_is_found(busy: Customer, engine: FakeEngine, table: str, sql: str, expected: set[str]) -> None:
    assert check_books(engine.url).is_balanced
    with _tampering(table) as cursor:
        cursor.execute(sql)
        assert cursor.rowcount > 0
    assert _broken(check_books(engine.url)) == expected


def test_an_event_kept_off_every_statement_is_found(busy: Customer, engine: FakeEngine) -> None:
    with _tampering("billing_usageevent") as cursor:
        cursor.execute("UPDATE billing_usageevent SET booked_at = booked_at - interval '1 hour'")
    with _tampering("billing_statementevent") as cursor:
        cursor.execute("DELETE FROM billing_statementevent WHERE event_id = (SELECT min(id) FROM billing_usageevent)")
    assert "each event booked and ended before a close is on one statement" in _broken(check_books(engine.url))


def test_statements_that_leave_a_gap_are_found(busy: Customer, engine: FakeEngine) -> None:
    with _tampering("billing_statement") as cursor:
        cursor.execute("UPDATE billing_statement SET period_end = period_end - interval '1 second'")
        close_period(tenant=busy.tenant, actor="usr")
        cursor.execute("UPDATE billing_statement SET period_start = period_start + interval '1 ms' WHERE total = 0")
    assert _broken(check_books(engine.url)) == {"a tenant's statements follow each other without gap or overlap"}


def test_a_hold_that_nobody_sweeps_is_found(
    busy: Customer, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(Hold).filter(state="open").update(expires_at=timezone.now() - timedelta(minutes=1))
    monkeypatch.setattr("controlplane.inference.books.expire_holds", lambda: 0)
    assert _broken(check_books(engine.url)) == {"no hold is open past its time and a sweep"}


# --- against the engine --------------------------------------------------------------------------------------------

LINES = "each line of the engine's journal has its usage event, with the same tokens"
EVENTS = "each usage event has exactly one line in the engine's journal"


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda journal: journal.pop(0), {EVENTS}),
        (lambda journal: journal.clear(), {EVENTS}),
        (lambda journal: journal.reverse(), set()),
        (lambda journal: journal.append(journal[0]), {EVENTS}),
    ],
    ids=["dropped", "lost", "reordered", "doubled"],
)
def test_what_the_journal_lacks_or_has_twice_is_found(
    busy: Customer, engine: FakeEngine, change: Callable[[list], object], expected: set[str]
) -> None:
    lines = list(engine.journal)
    change(lines)
    engine.journal[:] = [_at(line, position) for position, line in enumerate(lines, 1)]
    assert _broken(check_books(engine.url)) == expected


def _at(line, position: int):
    return type(line)(position, *[getattr(line, name) for name in line.__struct_fields__[1:]])


def test_work_that_nobody_ordered_is_found_until_it_is_explained(busy: Customer, engine: FakeEngine) -> None:
    write(engine, busy, "req_unknown")
    assert _broken(check_books(engine.url)) == {LINES, "no discrepancy is open"}
    Discrepancy.objects.update(resolved_at=timezone.now(), note="a benchmark on the engine's own socket")
    assert check_books(engine.url).is_balanced


def test_other_tokens_than_the_door_booked_are_found(acme: Customer, engine: FakeEngine) -> None:
    acme.serve("req_1")
    write(engine, acme, "req_1", completion_tokens=4)
    assert _broken(check_books(engine.url)) == {LINES, "no discrepancy is open"}


def test_what_the_door_books_while_the_books_are_checked_is_no_error(
    busy: Customer, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that ends after the journal was read: its line is there, but has not been taken in."""

    def meanwhile() -> int:
        busy.serve("req_meanwhile")
        return 0

    monkeypatch.setattr("controlplane.inference.books.expire_holds", meanwhile)
    assert check_books(engine.url).is_balanced
    assert everything(UsageEvent).filter(request_id="req_meanwhile").exists()


def test_more_than_was_held_is_cut_and_found(acme: Customer, engine: FakeEngine) -> None:
    """Our bug, were it ever to happen: the budget keeps its promise and the books tell of it."""
    run_sync(acme.reserve("req_1", amount=D("0.000000000001")))
    run_sync(settle_hold(request_id="req_1", amount=D(1), tokens=1))
    run_sync(record_usage(**acme.usage("req_1")))
    write(engine, acme, "req_1")
    assert _broken(check_books(engine.url)) == {"each usage event settled exactly one hold, for its amount"}


# --- the command ---------------------------------------------------------------------------------------------------


def _command(url: str, *arguments: str) -> tuple[int, str]:
    out = StringIO()
    with override_settings(ENGINE_URL=url):
        try:
            call_command("check_books", *arguments, stdout=out)
        except SystemExit as exc:
            return int(exc.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_the_command_prints_each_invariant_and_exits_by_the_verdict(busy: Customer, engine: FakeEngine) -> None:
    code, text = _command(engine.url)
    lines = text.splitlines()
    assert (code, lines[-1]) == (0, "books: balanced")
    assert sum(line.startswith("ok ") for line in lines) == len(check_books(engine.url).findings)
    Discrepancy.objects.create(kind="usage_conflict", request_id="req_x")
    code, text = _command(engine.url)
    assert (code, text.splitlines()[-1]) == (1, "books: NOT balanced")
    [failed] = [line for line in text.splitlines() if line.startswith("FAIL")]
    assert failed.endswith("no discrepancy is open  1 broken")


def test_the_command_speaks_json(busy: Customer, engine: FakeEngine) -> None:
    code, text = _command(engine.url, "--json")
    found = json.loads(text)
    assert (code, found["balanced"]) == (0, True)
    assert {tuple(sorted(row)) for row in found["invariants"]} == {("broken", "checked", "name", "note", "number")}
