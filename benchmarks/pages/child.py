"""`python -m benchmarks.pages.child EVENTS DAYS SECONDS POSTGRES_PID`, in the environment of a seeded stack: fills it
and prints what was measured, as JSON."""

import asyncio
import json
import os
import sys

import django

django.setup()

from django.test.utils import setup_test_environment  # noqa: E402

from benchmarks.pages.holds import measure_holds  # noqa: E402  # the apps must be ready before
from benchmarks.pages.rows import KEYS, fill  # noqa: E402
from benchmarks.pages.summing import measure_summing  # noqa: E402
from benchmarks.pages.timing import measure_pages  # noqa: E402
from benchmarks.serving.work import MODEL  # noqa: E402
from controlplane.quotas.limits import LimitChanges, set_limits  # noqa: E402
from tenants.key_services import issue_key  # noqa: E402
from tenants.models import Membership, Role, Tenant, User  # noqa: E402
from tenants.scope import ALL_TENANTS, tenant_scope  # noqa: E402


@tenant_scope(ALL_TENANTS)
def main(events: int, days: int, seconds: float, postgres_pid: int) -> None:
    setup_test_environment()  # so that the test client is a host that is let in
    tenants = list(Tenant.objects.order_by("created_at", "id"))
    hot, user = tenants[0], User.objects.create(email="hot@bench.example")
    Membership.objects.create(tenant=hot, user=user, role=Role.OWNER)
    keys = {tenant: [_key(tenant, n, user if tenant == hot else None) for n in range(KEYS)] for tenant in tenants}
    whose = [(tenant.id, keys[tenant]) for tenant in tenants]
    owner_url = os.environ["VENEER_MIGRATION_DATABASE_URL"]
    fill(owner_url, tenants=whose, events=events, days=days, model=MODEL)
    sums = measure_summing(owner_url)
    pages, hot_events = measure_pages(hot, user)
    limits = LimitChanges(tokens_per_month=10**15)
    set_limits(tenant=hot, member_id=user.id, changes=limits, actor="bench")
    set_limits(tenant=hot, key_id=keys[hot][0], changes=limits, actor="bench")
    set_limits(tenant=hot, adapter_id="adp_0_1", changes=limits, actor="bench")
    holds = asyncio.run(measure_holds(hot.id, keys[hot][0], "adp_0_1", seconds, postgres_pid))
    found = {"events": events, "hot_events": hot_events, "sums": sums, "pages": pages, "holds": holds}
    print(json.dumps(found))


def _key(tenant: Tenant, number: int, user: User | None) -> str:
    return issue_key(tenant=tenant, name=f"bench {number}", scopes=("inference",), actor=user)[0].id


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
