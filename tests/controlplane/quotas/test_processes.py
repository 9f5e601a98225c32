"""Fifty processes that start at once, on each limit of each level in turn: exactly as many requests pass as the binding
one has room for."""

import json
import subprocess
import sys

import pytest

from controlplane.quotas.limits import LimitChanges
from tests.controlplane.money import ROOT, D, database_url
from tests.controlplane.quotas.conftest import Levels, levels_of

PROCESSES, ROOM = 50, 18
TIGHT: dict[str, LimitChanges] = {
    "budget": {"budget": D("0.25") * ROOM},
    "concurrency": {"concurrency": ROOM},
    "requests of a minute": {"requests_per_minute": ROOM},
    "tokens of a minute": {"tokens_per_minute": 10 * ROOM + 9},
    "tokens of a day": {"tokens_per_day": 10 * ROOM + 9},
    "tokens of a month": {"tokens_per_month": 10 * ROOM + 9},
}
WIDE: LimitChanges = {
    "budget": D(1000), "concurrency": 1000, "requests_per_minute": 10**6, "tokens_per_minute": 10**6,
    "tokens_per_day": 10**6, "tokens_per_month": 10**6,
}  # fmt: skip
LEVELS = ("tenant", "member", "key", "adapter")
# One interpreter is started and forks: what is imported before is not imported fifty times. Each child has a connection
# of its own. They meet at a pipe that is closed when all are there.
CODE = """
import json, os, sys, django
django.setup()
from decimal import Decimal
from django.db import connection
from controlplane.errors import ApiError
from controlplane.quotas.services import reserve
from tenants.scope import ALL_TENANTS, enter_scope
from tenants.sql import run_sync

processes, customers = json.loads(sys.argv[1])
gate, opener = os.pipe()

def passed(me, name, tenant, key, adapter):
    try:
        run_sync(reserve(request_id=f"{name} {me}", tenant_id=tenant, key_id=key, adapter_id=adapter, tokens=10,
                         amount=Decimal("0.25"), ttl_seconds=60), tenant=tenant)
    except ApiError as error:
        assert error.status in (402, 429), error
        return error.headers["x-limit-level"]
    return "passed"

def child(me):
    os.close(opener)
    connection.ensure_connection()
    os.read(gate, 1)
    told = json.dumps({name: passed(me, name, *ids) for name, ids in customers.items()})
    os.write(1, told.encode() + b"\\n")
    os._exit(0)

for me in range(processes):
    if not os.fork():
        try:
            child(me)
        finally:
            os._exit(1)
# The buckets of a minute earn nothing while the processes run.
enter_scope(ALL_TENANTS)
with connection.cursor() as cursor:
    cursor.execute("UPDATE quotas_quota SET credited_at = now() + interval '59 seconds'")
    assert cursor.rowcount
os.close(opener)
codes = [os.wait()[1] for _ in range(processes)]
assert not any(codes), codes
"""


def _limited(binding: str, name: str) -> Levels:
    levels = levels_of(f"{binding}-{name.replace(' ', '-')}")
    for level in LEVELS:
        levels.limit(level, {**WIDE, **TIGHT[name]} if level == binding else WIDE)
    return levels


@pytest.mark.django_db(transaction=True)
def test_exactly_as_many_pass_as_the_binding_level_has_room_for() -> None:
    every = {f"{level} {name}": _limited(level, name) for level in LEVELS for name in TIGHT}
    ids = {name: [levels.acme.tenant.id, levels.acme.key.id, levels.adapter_id] for name, levels in every.items()}
    env = {
        "PATH": "/usr/bin:/bin", "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }  # fmt: skip
    printed = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps([PROCESSES, ids])],
        env=env, check=True, capture_output=True, text=True, timeout=240,
    ).stdout  # fmt: skip
    told = [json.loads(line) for line in printed.splitlines()]
    assert len(told) == PROCESSES
    for name, levels in every.items():
        answers = sorted(each[name] for each in told)
        assert answers == sorted(["passed"] * ROOM + [name.split()[0]] * (PROCESSES - ROOM)), name
        _check_used(levels)


def _check_used(levels: Levels) -> None:
    """What was refused has left nothing, on no level."""
    for level in LEVELS:
        quota = levels.quota(level)
        assert (quota.running, quota.held) == (ROOM, D("0.25") * ROOM)
        assert quota.day_tokens == quota.month_tokens == 10 * ROOM


def test_a_customer_has_all_levels(levels: Levels) -> None:
    """Or the test above would show less than it says."""
    assert len({levels.quota_id(level) for level in LEVELS}) == len(LEVELS)
