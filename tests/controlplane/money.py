"""What the tests of quotas, billing and books share: a tenant with a key and a price, and work done side by side."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any, Unpack

from django.db import connection

from controlplane.billing.models import Price
from controlplane.billing.pricing import PinnedPrice, amount_of
from controlplane.billing.services import price_by_id, record_usage
from controlplane.quotas.limits import LimitChanges, change_limits
from controlplane.quotas.models import Hold, Quota
from controlplane.quotas.services import reserve, settling
from controlplane.quotas.subjects import Whose, subject_of
from tenants.ids import new_id
from tenants.key_services import issue_key
from tenants.models import ApiKey, Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Plan, Query, run_sync

BASE = "base"
ROOT = Path(__file__).resolve().parents[2]
D = Decimal


@dataclass
class Customer:
    """A tenant, one key, and the price of the base model."""

    tenant: Tenant
    key: ApiKey
    price: Price

    def reserve(self, request_id: str, **more: Any) -> Plan[Any]:
        found = {"tokens": 10, "amount": D("0.001"), "ttl_seconds": 60, "key_id": self.key.id, "context": self.context}
        return reserve(request_id=request_id, tenant_id=self.tenant.id, **found | more)

    @property
    def context(self) -> dict[str, Any]:
        """What the door keeps with a hold of the base model."""
        names = {"adapter_id": None, "adapter_version_id": None, "model": BASE, "base_model": BASE}
        return names | {"price_id": self.price.id}

    def limit(self, changes: LimitChanges, *, key: ApiKey | None = None, **whose: Unpack[Whose]) -> None:
        if key:
            whose["key_id"] = key.id
        run_sync(change_limits(tenant_id=self.tenant.id, changes=changes, **whose))

    def quota(self, key: ApiKey | None = None, **whose: Unpack[Whose]) -> Quota:
        if key:
            whose["key_id"] = key.id
        with tenant_scope(self.tenant.id):
            return Quota.objects.get(subject=subject_of(self.tenant.id, whose).id)

    def hold(self, request_id: str) -> Hold:
        with tenant_scope(self.tenant.id):
            return Hold.objects.get(request_id=request_id)

    def usage(self, request_id: str, **more: Any) -> dict[str, Any]:
        """Arguments of `record_usage`."""
        found = {
            "request_id": request_id, "tenant_id": self.tenant.id, "key_id": self.key.id, "adapter_id": None,
            "adapter_version_id": None, "model": BASE, "base_model": BASE, "price_id": self.price.id,
            "prompt_tokens": 7, "cached_tokens": 2, "completion_tokens": 3, "device_ns": 5_000_000,
            "finish_reason": "stop", "started_at": AT - timedelta(seconds=1), "finished_at": AT,
        }  # fmt: skip
        return found | more

    def serve(self, request_id: str | None = None, **more: Any) -> Decimal:
        """One request from hold to books; what it cost."""
        found = self.usage(request_id or new_id("req"), **more)
        return run_sync(_served(self, found))


AT = datetime(2026, 5, 17, 12, 30, tzinfo=UTC)


def _served(customer: Customer, usage: dict[str, Any]) -> Plan[Decimal]:
    price: PinnedPrice = yield from price_by_id(usage["price_id"])
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    amount = amount_of(price, prompt=prompt, cached=usage["cached_tokens"], completion=completion)
    most = amount_of(price, prompt=prompt, cached=0, completion=completion)
    yield from customer.reserve(usage["request_id"], amount=most, tokens=prompt + completion, key_id=usage["key_id"])
    yield from settle_hold(request_id=usage["request_id"], amount=amount, tokens=prompt + completion)
    yield from record_usage(**usage)
    return amount


class Settlement(IntEnum):
    """What a settlement did. LATE: the hold had expired or been released."""

    NOTHING = 0
    SETTLED = 1
    LATE = 2


def settle_hold(*, request_id: str, amount: Decimal, tokens: int) -> Plan[Settlement]:
    """`settling` alone; in the product it always goes with the usage event."""
    parts = settling(request_id=request_id, amount=amount, tokens=tokens)
    ended = yield Query(f"WITH {parts.sql} SELECT late FROM settled", parts.params)
    return Settlement.NOTHING if not ended else Settlement.LATE if ended[0]["late"] else Settlement.SETTLED


def customer_named(slug: str, **rates: str) -> Customer:
    tenant = Tenant.objects.create(slug=slug, name=slug.title())
    key, _ = issue_key(tenant=tenant, name=f"{slug} key", scopes=("inference",), actor=None)
    prices = {"input": D("0.15"), "cached_input": D("0.05"), "output": D("0.6")} | {k: D(v) for k, v in rates.items()}
    price = Price.objects.filter(base_model=BASE, tenant=tenant).first() or Price.objects.create(
        base_model=BASE, tenant=tenant, created_by="test", **prices
    )
    return Customer(tenant, key, price)


def another_key(customer: Customer, name: str = "another", **more: Any) -> ApiKey:
    return issue_key(tenant=customer.tenant, name=name, scopes=("inference",), actor=None, **more)[0]


def everything(model: Any) -> Any:
    """A queryset over all tenants, for looking; use inside `with tenant_scope(ALL_TENANTS)` only when lazy."""
    with tenant_scope(ALL_TENANTS):
        return model.objects.all()


def side_by_side(jobs: Iterable[Callable[[], object]]) -> Counter[str]:
    """Run jobs in threads that start together; how often each result came, an exception by its class's name."""
    jobs = list(jobs)
    barrier, results = threading.Barrier(len(jobs)), Counter[str]()
    lock = threading.Lock()

    def run(job: Callable[[], object]) -> None:
        barrier.wait(60)
        try:
            result = str(job())
        except Exception as exc:
            result = type(exc).__name__
        finally:
            connection.close()
        with lock:
            results[result] += 1

    threads = [threading.Thread(target=copy_context().run, args=(run, job)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results


def database_url() -> str:
    """Of the tests' own database."""
    found = connection.settings_dict
    return f"postgresql://{found['USER']}:{found['PASSWORD']}@{found['HOST']}:{found['PORT']}/{found['NAME']}"


def in_processes(code: str, arguments: list[list[str]]) -> list[str]:
    """Run Python in processes of their own, on the tests' database, all let go at once; what each printed."""
    prelude = (
        "import os, sys, django; django.setup()\n"
        "from decimal import Decimal as D\nfrom tenants.sql import run_sync\n"
        "from controlplane.errors import ApiError\nfrom controlplane.quotas.services import reserve\n"
        "from django.db import connection; connection.ensure_connection()\n"
        "from tenants.scope import ALL_TENANTS, enter_scope; enter_scope(ALL_TENANTS)\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
    )
    env = {
        "PATH": "/usr/bin:/bin", "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }  # fmt: skip
    children = [
        subprocess.Popen(
            [sys.executable, "-c", prelude + code, *given],
            env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for given in arguments
    ]  # fmt: skip
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return [child.communicate(timeout=60)[0] for child in children]
