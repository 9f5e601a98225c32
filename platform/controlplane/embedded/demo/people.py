"""Who plays in the demo: the operator, two tenants with an administrator each, and the keys their programs carry."""

import secrets
from dataclasses import dataclass

from controlplane.embedded.client import JSON, Client
from controlplane.embedded.credentials import OPERATOR_EMAIL
from controlplane.embedded.demo.stack import DemoStack
from controlplane.embedded.seed import DEMO_TENANTS, DemoTenant

PRICE = {"input": "0.500000", "cached_input": "0.050000", "output": "1.500000"}  # per million tokens


@dataclass(frozen=True)
class Member:
    """A tenant of the demo, with its administrator's session and two API keys: for programs, and to be revoked."""

    plan: DemoTenant
    id: str
    password: str

    @property
    def slug(self) -> str:
        return self.plan.slug

    def session(self, stack: DemoStack) -> Client:
        """Signed in anew: a session outlives no restart of the test's own cookie jar."""
        client = Client(stack.console_url, tenant_id=self.id)
        client.sign_in(self.plan.email, self.password)
        return client


def operator_session(stack: DemoStack) -> Client:
    client = Client(stack.console_url)
    client.sign_in(OPERATOR_EMAIL, stack.secret("operator_password"))
    return client


def create_tenants(operator: Client) -> list[Member]:
    return [_create_tenant(operator, plan) for plan in DEMO_TENANTS]


def _create_tenant(operator: Client, plan: DemoTenant) -> Member:
    password = secrets.token_urlsafe(12)
    wanted = {"slug": plan.slug, "name": plan.name, "admin_email": plan.email, "admin_password": password}
    tenant = operator.post("/api/v1/operator/tenants", wanted)
    return Member(plan, tenant["id"], password)


def set_price(operator: Client, base_model: str) -> None:
    operator.post("/api/v1/operator/prices", {"base_model": base_model, **PRICE})


def issue_key(session: Client, name: str) -> JSON:
    """The key's row, with its text in `key`."""
    return session.post("/api/v1/keys", {"name": name, "scopes": ["inference", "usage:read"]})
