"""Two tenants do anything at all through the public API, in any order: nothing of the one is ever shown to the other.

Once as it ships. Once with every guard of ours gone: the manager filters nothing and refuses nothing, and every filter
by tenant is forgotten. Then the database alone holds.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import models
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tenants.ids import new_id
from tenants.models import Membership, Tenant, User
from tenants.scope import TenantManager
from tests.controlplane.adapters.peft_folder import BASE, peft_folder, write_base
from tests.controlplane.conftest import Api, signed_in

pytestmark = pytest.mark.django_db
_ID = re.compile(r"\b[a-z]{3}_[A-Za-z0-9]{22}\b")
LISTS = (
    "keys", "adapters", "members", "invitations", "audit", "audit/export", "webhooks", "alerts", "statements",
    "invoices", "usage", "balance", "grants", "billing-profile", "session", "price-plan", "markups", "earnings",
)  # fmt: skip


@dataclass
class Side:
    """A tenant's owner at their browser. known: every id that they were ever shown. made: by kind, what they made."""

    tenant: Tenant
    api: Api
    known: set[str] = field(default_factory=set)
    made: dict[str, list[str]] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        response = self.api.raw(method, path, body)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        text = content.decode()
        assert response.status_code < 500, text
        # A refusal may repeat the id that was asked for.
        self.known |= set(_ID.findall(text.replace(path.split("/")[1] if "/" in path else "\0", "")))
        return response.status_code, text

    def make(self, kind: str, path: str, body: Any, pattern: str) -> None:
        _, text = self.ask("POST", path, body)
        self.made.setdefault(kind, []).extend(re.findall(rf'"id":"({pattern}_\w+)"', text)[:1])


Step = tuple[int, int, int]
# What somebody may do with their own things, and try with anybody's: {0} is an id.
TOUCHES: list[tuple[str, str, str, Any]] = [
    ("key", "PATCH", "keys/{0}", {"name": "changed"}),
    ("key", "POST", "keys/{0}/rotate", {}),
    ("key", "POST", "keys/{0}/revoke", None),
    ("key", "GET", "keys/{0}/limits", None),
    ("key", "PUT", "keys/{0}/limits", {"requests_per_minute": 5}),
    ("adapter", "GET", "adapters/{0}", None),
    ("adapter", "PUT", "adapters/{0}/pin", {"pinned": True}),
    ("adapter", "GET", "adapters/{0}/grants", None),
    ("adapter", "DELETE", "adapters/{0}", None),
    ("version", "GET", "versions/{0}", None),
    ("version", "PUT", "versions/{0}/files/adapter_config.json?offset=0", peft_folder().files["adapter_config.json"]),
    ("version", "POST", "versions/{0}/finish", None),
    ("invitation", "DELETE", "invitations/{0}", None),
    ("webhook", "PATCH", "webhooks/{0}", {"kinds": []}),
    ("webhook", "DELETE", "webhooks/{0}", None),
    ("webhook", "GET", "webhooks/{0}/deliveries", None),
]


def make_key(side: Side) -> None:
    side.make("key", "keys", {"name": f"key of {side.tenant.slug}", "scopes": ["inference"]}, "key")


def make_adapter(side: Side) -> None:
    _, text = side.ask("POST", "adapters", {"name": "pirate", "base_model": BASE, "files": peft_folder().declaration()})
    for kind, prefix in (("adapter", "adp"), ("version", "adv")):
        side.made.setdefault(kind, []).extend(re.findall(rf"{prefix}_\w+", text)[:1])


def make_invitation(side: Side) -> None:
    side.make("invitation", "invitations", {"email": f"{new_id('x')}@example.com", "role": "viewer"}, "inv")


def make_webhook(side: Side) -> None:
    side.make("webhook", "webhooks", {"url": "https://8.8.8.8/hook", "kinds": []}, "whk")


MAKES: list[Callable[[Side], None]] = [make_key, make_adapter, make_invitation, make_webhook]


def new_side() -> Side:
    name = new_id("t").lower().replace("_", "-")
    tenant = Tenant.objects.create(slug=name, name=name)
    user = User.objects.create(email=f"owner@{name}.example")
    Membership.objects.create(tenant=tenant, user=user, role="owner")
    return Side(tenant, signed_in(user))


def play(steps: list[Step]) -> None:
    sides = [new_side(), new_side()]
    for side in sides:
        for make in MAKES:
            make(side)
        assert all(len(side.made[kind]) == 1 for kind in ("key", "adapter", "version", "invitation", "webhook"))
    for who, what, which in steps:
        side, other = sides[who], sides[1 - who]
        if what < len(MAKES):
            MAKES[what](side)
        elif what < len(MAKES) + len(TOUCHES):
            kind, method, path, body = TOUCHES[what - len(MAKES)]
            ids = [*side.made.get(kind, ()), *other.made.get(kind, ())]
            chosen = ids[which % len(ids)]
            status, text = side.ask(method, path.format(chosen), body)
            if chosen in other.made.get(kind, ()):
                assert status == 404, (method, path, text)
        else:
            side.ask("GET", LISTS[what - len(MAKES) - len(TOUCHES)])
        nothing_is_shared(sides)
    for side in sides:
        for path in LISTS:
            status, text = side.ask("GET", path)
            assert status == 200, (path, text)
            assert sides[side is sides[0]].tenant.slug not in text, path
    nothing_is_shared(sides)
    assert all(set(ids) <= side.known for side in sides for ids in side.made.values())


def nothing_is_shared(sides: list[Side]) -> None:
    assert sides[0].known & sides[1].known == set()


step = st.tuples(st.integers(0, 1), st.integers(0, len(MAKES) + len(TOUCHES) + len(LISTS) - 1), st.integers(0, 50))
games = settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Any) -> None:
    settings.MODEL_DIR = write_base(tmp_path / "models")
    settings.STAGING_DIR = tmp_path / "staging"


@games
@given(steps=st.lists(step, min_size=10, max_size=30))
def test_nothing_of_one_is_ever_shown_to_the_other(steps: list[Step]) -> None:
    play(steps)


@contextmanager
def every_guard_gone() -> Iterator[None]:
    """What programmers could forget, all of it at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TenantManager, "get_queryset", models.Manager.get_queryset)
        real = models.QuerySet._filter_or_exclude

        def forgetful(self: Any, negate: bool, args: Any, kwargs: dict[str, Any]) -> Any:
            kept = {name: value for name, value in kwargs.items() if name not in ("tenant", "tenant_id")}
            return real(self, negate, args, kept)

        patch.setattr(models.QuerySet, "_filter_or_exclude", forgetful)
        yield


@games
@given(steps=st.lists(step, min_size=10, max_size=30))
def test_the_database_alone_holds(steps: list[Step]) -> None:
    with every_guard_gone():
        play(steps)


def test_with_the_guards_gone_only_the_database_is_left() -> None:
    """Or the test above would show nothing: as an operator, the same forgetfulness shows everybody's rows."""
    sides = [new_side(), new_side()]
    for side in sides:
        make_key(side)
    with every_guard_gone():
        found = Membership.objects.filter(tenant=sides[0].tenant)
        assert {member.tenant_id for member in found} >= {side.tenant.id for side in sides}
