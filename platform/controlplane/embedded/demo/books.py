"""After the load: nothing is held, the books are closed and balance, the journal equals the usage events one to one."""

import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg

from controlplane.currency import currency
from controlplane.embedded.client import Client
from controlplane.embedded.demo.stack import DemoStack
from controlplane.embedded.demo.steps import DemoFailed, expect
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.settlement import PLATFORM
from tenants.roles import OPERATOR

QUIET_SECONDS = 150.0
ANSWER_SECONDS = 10.0
Line = tuple[str, int, int, int, int]  # request id, prompt, cached, completion tokens, device nanoseconds


def wait_until_settled(stack: DemoStack) -> None:
    """Every hold has ended: by the door, by the journal's reader, or by time."""
    deadline = time.monotonic() + QUIET_SECONDS
    while held := open_holds(stack):
        if time.monotonic() > deadline:
            raise DemoFailed(f"{held} holds are still open {QUIET_SECONDS:.0f} s after the load")
        time.sleep(0.5)


def close_period(operator: Client, tenant_id: str) -> str:
    """Freeze what a tenant has used so far into a statement; what that says, in words."""
    statement = operator.post(f"/api/v1/operator/tenants/{tenant_id}/close", {})
    expect(Decimal(statement["total"]) > 0, f"a statement after the load should come to something: {statement}")
    total = f"{statement['total']} {currency()}"
    return f"{total} used, {statement['credit_used']} of it from credit, {statement['due']} due"


def check_books(stack: DemoStack) -> str:
    """What `manage.py check_books` prints, once it exits with 0."""
    done = stack.manage("check_books")
    expect(done.returncode == 0, f"check_books should exit with 0, not {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_journal(stack: DemoStack) -> int:
    """Read both sides ourselves and compare them as sets of lines. Returns how many there are."""
    journal = sorted(_lines(str(stack.facts()["VENEER_ENGINE_URL"])))
    with _as_operator(stack) as conn:
        rows = conn.execute(
            "SELECT request_id, prompt_tokens, cached_tokens, completion_tokens, device_ns FROM billing_usageevent"
        ).fetchall()
    events = sorted(rows)
    only_journal, only_events = set(journal) - set(events), set(events) - set(journal)
    expect(
        journal == events,
        f"the journal ({len(journal)}) and the usage events ({len(events)}) differ: only in the journal "
        f"{sorted(only_journal)[:3]}, only in the events {sorted(only_events)[:3]}",
    )
    return len(events)


def open_holds(stack: DemoStack) -> int:
    with _as_operator(stack) as conn:
        found = conn.execute("SELECT count(*) FROM quotas_hold WHERE state = 'open'").fetchone()
    return int(found[0]) if found else 0


def _as_operator(stack: DemoStack) -> "psycopg.Connection[tuple[Any, ...]]":
    return psycopg.connect(str(stack.facts()["DATABASE_URL"]), options=f"-c role={OPERATOR}")


def _lines(url: str) -> Iterator[Line]:
    """All but the platform's own, which tries each adapter before it serves: nobody is billed for those."""
    after = 0
    with EngineCalls(url, seconds=ANSWER_SECONDS) as engine:
        while lines := engine.read_journal(after).lines:
            for line in [line for line in lines if line.tenant != PLATFORM]:
                used = line.usage
                yield line.request_id, used.prompt_tokens, used.cached_tokens, used.completion_tokens, used.device_ns
            after = lines[-1].position
