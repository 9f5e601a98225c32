"""`python -m benchmarks.serving.hot_row SECONDS POSTGRES_PID`, in the environment of a seeded stack: how often a second
the hold row of one tenant is taken, with limits on all four levels. Prints JSON."""

import asyncio
import json
import sys
from typing import Final

import django

django.setup()

from benchmarks.pages.holds import measure_holds  # noqa: E402  # the apps must be ready before
from controlplane.quotas.limits import LimitChanges, set_limits  # noqa: E402
from tenants.key_services import issue_key  # noqa: E402
from tenants.models import Membership, Role, Tenant, User  # noqa: E402
from tenants.scope import ALL_TENANTS, tenant_scope  # noqa: E402

ADAPTER: Final = "adp_hot"
_LIMITS: Final = LimitChanges(tokens_per_month=10**15)


@tenant_scope(ALL_TENANTS)
def main(seconds: float, postgres_pid: int) -> None:
    hot = Tenant.objects.create(slug="hot", name="Hot")
    user = User.objects.create(email="hot@bench.example")
    Membership.objects.create(tenant=hot, user=user, role=Role.OWNER)
    key, _ = issue_key(tenant=hot, name="bench", scopes=("inference",), actor=user)
    set_limits(tenant=hot, changes=_LIMITS, actor="bench")
    set_limits(tenant=hot, member_id=user.id, changes=_LIMITS, actor="bench")
    set_limits(tenant=hot, key_id=key.id, changes=_LIMITS, actor="bench")
    set_limits(tenant=hot, adapter_id=ADAPTER, changes=_LIMITS, actor="bench")
    print(json.dumps(asyncio.run(measure_holds(hot.id, key.id, ADAPTER, seconds, postgres_pid))))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
