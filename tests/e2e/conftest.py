"""One real stack for all tests here: `manage.py up` in a throw-away home, two tenants, two adapters."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane.embedded.demo import people, uploads
from controlplane.embedded.demo.load import Ask
from controlplane.embedded.demo.people import Member
from controlplane.embedded.demo.prompts import BEHAVIOURS
from controlplane.embedded.demo.stack import DemoStack
from engine.models.demo_model import prepare
from tests.console.conftest import browser
from tests.controlplane.billing.fake_stripe import KEY, SECRET, FakeStripe
from tests.controlplane.web import Web
from tests.e2e import deaths

__all__ = ["browser"]
ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = {"acme": "pirate", "globex": "sql"}
# Holds of requests that never began end by themselves; tests need not wait a minute and a half for that.
SETTINGS = {"VENEER_HOLD_TTL_SECONDS": "20"}


@dataclass(frozen=True)
class World:
    """A running stack and who is in it. keys: one API key for each tenant. web: what it may call, Stripe among it."""

    stack: DemoStack
    members: dict[str, Member]
    keys: dict[str, str]
    web: Web
    stripe: FakeStripe

    @property
    def base_model(self) -> str:
        return self.stack.model.name

    def asks(self, *, max_tokens: int | None = None) -> list[Ask]:
        """Twelve greedy requests: each tenant's adapter and the base model, streaming and not."""
        found = []
        for slug, adapter in ADAPTERS.items():
            for model in (adapter, self.base_model):
                for number, question in enumerate((*BEHAVIOURS[adapter].questions, "What is the moon?")):
                    found.append(Ask(slug, model, question, max_tokens or 40, stream=number % 2 == 0))
        return found


@pytest.fixture(scope="session")
def web() -> Iterator[Web]:
    with Web() as found:
        yield found


@pytest.fixture(scope="session")
def world(web: Web) -> Iterator[World]:
    model = prepare(Path(os.environ.get("VENEER_TEST_MODEL_HOME", ROOT / ".veneer")))
    home = Path(tempfile.mkdtemp(prefix="veneer-e2e-"))
    home.chmod(0o711)
    stripe = FakeStripe(web)
    outside = {
        "VENEER_STRIPE_KEY": KEY, "VENEER_STRIPE_WEBHOOK_SECRET": SECRET, "VENEER_STRIPE_API_URL": stripe.url,
        "VENEER_FETCH_ALLOWED_NETWORKS": "127.0.0.0/8",
    }  # fmt: skip
    stack = DemoStack(home, model, settings=SETTINGS | outside | deaths.settings_of(home))
    try:
        stack.start()
        yield World(stack, *_fill(stack), web, stripe)
    finally:
        stack.stop()
        shutil.rmtree(home, ignore_errors=True)


def _fill(stack: DemoStack) -> tuple[dict[str, Member], dict[str, str]]:
    operator = people.operator_session(stack)
    members = {member.slug: member for member in people.create_tenants(operator)}
    people.set_price(operator, stack.model.name)
    keys = {}
    for slug, adapter in ADAPTERS.items():
        session = members[slug].session(stack)
        uploads.upload_by_api(session, name=adapter, base_model=stack.model.name)
        keys[slug] = people.issue_key(session, "tests")["key"]
    return members, keys
