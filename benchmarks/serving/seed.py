"""Tenants with keys, limits on both levels and an adapter each, and a price, in a database that has been migrated;
prints the keys as JSON. `python -m benchmarks.serving.seed TENANTS`."""

import json
import sys
from decimal import Decimal

import django

django.setup()

from benchmarks.serving.work import ADAPTER, MODEL  # noqa: E402
from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit  # noqa: E402
from controlplane.adapters.states import State  # noqa: E402
from controlplane.billing.prices import Rates, set_price  # noqa: E402  # the apps must be ready before
from controlplane.quotas.limits import LimitChanges, set_limits  # noqa: E402
from tenants.key_services import issue_key  # noqa: E402
from tenants.models import Tenant  # noqa: E402
from tenants.scope import ALL_TENANTS, tenant_scope  # noqa: E402

# Every limit is set, so that each is checked, and none is reached.
_LIMITS = LimitChanges(requests_per_minute=10**9, tokens_per_minute=10**12, concurrency=10**6, budget=Decimal(10**9))


@tenant_scope(ALL_TENANTS)
def main(tenants: int) -> None:
    set_price(
        base_model=MODEL, rates=Rates(input=Decimal(1), cached_input=Decimal(1), output=Decimal(2)), actor="bench"
    )
    keys = []
    for number in range(tenants):
        tenant = Tenant.objects.create(slug=f"bench-{number}", name=f"Bench {number}")
        key, raw = issue_key(tenant=tenant, name="bench", scopes=("inference",), actor=None)
        for key_id in (None, key.id):
            set_limits(tenant=tenant, key_id=key_id, changes=_LIMITS, actor="bench")
        _add_adapter(tenant)
        keys.append(raw)
    print(json.dumps(keys))


def _add_adapter(tenant: Tenant) -> None:
    """One that is served, whose files nobody reads."""
    adapter = Adapter.objects.create(tenant=tenant, name=ADAPTER, base_model=MODEL)
    ready = {"state": State.READY, "digest": "0" * 64, "rank": 8, "uri": "file:///none", "size_bytes": 1}
    version = AdapterVersion.objects.create(tenant=tenant, adapter=adapter, number=1, **ready)
    AliasSplit.objects.create(adapter=adapter, version=version, weight=100)


if __name__ == "__main__":
    main(int(sys.argv[1]))
