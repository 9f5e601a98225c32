"""Fifty processes that start at once, on each limit of each level in turn: exactly as many requests pass as the binding
one has room for."""

import json
import subprocess
import sys

import pytest

from controlplane.quotas.limits import LimitChanges
from tests.controlplane.money import ROOT, Customer, D, customer_named, database_url

PROCESSES, EACH, ROOM = 50, 2, 37
# The limits of a minute would refill by more than a request while the processes run: they have tests of their own.
TIGHT: dict[str, LimitChanges] = {
    "budget": {"budget": D("0.25") * ROOM},
    "concurrency": {"concurrency": ROOM},
    "tokens of a day": {"tokens_per_day": 10 * ROOM + 9},
}
WIDE: LimitChanges = {"budget": D(1000), "concurrency": 1000, "tokens_per_day": 10**6}
# One interpreter is started and forks: what is imported before is not imported fifty times. Each child has a connection
# of its own. They meet at a pipe that is closed when all are there.
CODE = """
import json, os, sys, django
django.setup()
from decimal import Decimal
from django.db import connection
from controlplane.errors import ApiError
from controlplane.quotas.services import reserve
from tenants.sql import run_sync

processes, each, customers = json.loads(sys.argv[1])
gate, opener = os.pipe()

def passed(me, name, tenant, key):
    count = 0
    for n in range(each):
        try:
            run_sync(reserve(request_id=f"{name} {me} {n}", tenant_id=tenant, key_id=key, tokens=10,
                             amount=Decimal("0.25"), ttl_seconds=60), tenant=tenant)
            count += 1
        except ApiError as error:
            assert error.status in (402, 429), error
    return count

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
os.close(opener)
codes = [os.wait()[1] for _ in range(processes)]
assert not any(codes), codes
"""


def _limited(level: str, name: str) -> Customer:
    customer = customer_named(f"{level}-{name.replace(' ', '-')}")
    customer.limit({**WIDE, **TIGHT[name]} if level == "tenant" else WIDE)
    customer.limit({**WIDE, **TIGHT[name]} if level == "key" else WIDE, key=customer.key)
    return customer


@pytest.mark.django_db(transaction=True)
def test_exactly_as_many_pass_as_the_binding_level_has_room_for() -> None:
    customers = {f"{level} {name}": _limited(level, name) for level in ("tenant", "key") for name in TIGHT}
    ids = {name: [customer.tenant.id, customer.key.id] for name, customer in customers.items()}
    env = {
        "PATH": "/usr/bin:/bin", "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }  # fmt: skip
    printed = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps([PROCESSES, EACH, ids])],
        env=env, check=True, capture_output=True, text=True, timeout=240,
    ).stdout  # fmt: skip
    counts = [json.loads(line) for line in printed.splitlines()]
    assert len(counts) == PROCESSES
    assert {name: sum(count[name] for count in counts) for name in ids} == dict.fromkeys(ids, ROOM)
    for customer in customers.values():
        for quota in (customer.quota(), customer.quota(customer.key)):
            assert (quota.running, quota.held, quota.day_tokens) == (ROOM, D("0.25") * ROOM, 10 * ROOM)
