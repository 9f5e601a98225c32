"""There is no master key: whatever a key may do, and whoever issued it, what it asks is held, and paid."""

import httpx
import pytest

from controlplane.quotas.limits import LimitChanges, set_limits
from engine.protocol import Generate
from tenants.key_services import issue_key
from tenants.models import ApiKey, Membership, Role, User
from tenants.permissions import SCOPES
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_caller, usage_of

ASKED = {"model": BASE, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}


def key_of(caller: Caller, kind: str) -> str:
    user = User.objects.create(email=f"{kind}@{caller.tenant.slug}.example", is_operator=kind == "operator's")
    Membership.objects.create(tenant=caller.tenant, user=user, role=Role.OWNER)
    scopes = SCOPES if kind == "every scope" else ("inference",)
    actor = None if kind == "a program's" else user
    return issue_key(tenant=caller.tenant, name=kind, scopes=scopes, actor=actor, hidden=kind == "playground")[1]


@pytest.mark.parametrize("kind", ["every scope", "owner's", "operator's", "a program's", "playground"])
def test_it_is_budgeted_and_billed(stack: Served, caller: Caller, kind: str) -> None:
    raw = key_of(caller, kind)
    with httpx.Client(base_url=f"{stack.url}/v1", headers={"Authorization": f"Bearer {raw}"}, timeout=30) as http:
        assert http.post("/chat/completions", json=ASKED).status_code == 200
        [event] = usage_of(caller)
        assert event.amount > 0
        set_limits(tenant=caller.tenant, changes=LimitChanges(budget=event.amount), actor="usr")
        asked = len(stack.engine.of(Generate))
        assert http.post("/chat/completions", json=ASKED).status_code == 402
        assert len(stack.engine.of(Generate)) == asked
    assert len(usage_of(caller)) == 1


def test_a_key_of_no_tenant_cannot_be(caller: Caller) -> None:
    assert not ApiKey._meta.get_field("tenant").null


def test_a_key_without_the_scope_infers_nothing(stack: Served) -> None:
    caller = new_caller(scopes=tuple(scope for scope in SCOPES if scope != "inference"))
    answer = httpx.post(f"{stack.url}/v1/chat/completions", json=ASKED, headers=caller.headers, timeout=30)
    assert answer.status_code == 403
    assert usage_of(caller) == []
