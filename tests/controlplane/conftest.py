"""The people of the tests: Acme with somebody of each role, Globex with a stranger, and an operator."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.test import Client

from tenants.key_services import issue_key
from tenants.models import Membership, Role, Tenant, User
from tenants.permissions import SCOPES
from tenants.scope import ALL_TENANTS, tenant_scope

PASSWORD = "correct horse battery"


@dataclass
class Cast:
    """people: of Acme, by role. stranger: the owner of Globex. keys: raw, with every scope."""

    acme: Tenant
    globex: Tenant
    people: dict[str, User]
    stranger: User
    operator: User
    acme_key: str
    globex_key: str

    @property
    def owner(self) -> User:
        return self.people[Role.OWNER]


@dataclass
class Api:
    """A caller of the management API: JSON in, (status, JSON) out."""

    client: Client = field(default_factory=Client)
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        response = self.raw(method, path, body, **more)
        return response.status_code, response.json() if response.content else None

    def raw(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        if isinstance(body, bytes):
            kwargs: dict[str, Any] = {"data": body, "content_type": "application/octet-stream"}
        else:
            kwargs = {"data": body, "content_type": "application/json"} if body is not None else {}
        send = getattr(self.client, method.lower())
        return send(f"/api/v1/{path}", headers=self.headers | more.pop("headers", {}), **kwargs, **more)

    def get(self, path: str, **more: Any) -> tuple[int, Any]:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        return self.call("PUT", path, body, **more)

    def patch(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        return self.call("PATCH", path, body, **more)

    def delete(self, path: str, **more: Any) -> tuple[int, Any]:
        return self.call("DELETE", path, **more)


def signed_in(user: User) -> Api:
    api = Api()
    api.client.force_login(user)
    return api


def with_key(raw: str) -> Api:
    return Api(headers={"Authorization": f"Bearer {raw}"})


@pytest.fixture(autouse=True)
def everybody() -> Iterator[None]:
    """Tests look at all tenants' rows, as operators do. Requests do not: each begins with nobody's."""
    with tenant_scope(ALL_TENANTS):
        yield


@pytest.fixture(scope="session")
def hashed_password() -> str:
    """PASSWORD, hashed once: the shipped hasher is slow on purpose."""
    return make_password(PASSWORD)


def _person(tenant: Tenant | None, role: str, email: str, password: str) -> User:
    user = User.objects.create(email=email, password=password)
    if tenant:
        Membership.objects.create(tenant=tenant, user=user, role=role)
    return user


@pytest.fixture
def cast(db: None, hashed_password: str) -> Cast:
    acme = Tenant.objects.create(slug="acme", name="Acme")
    globex = Tenant.objects.create(slug="globex", name="Globex")
    people = {role.value: _person(acme, role, f"{role}@acme.example", hashed_password) for role in Role}
    stranger = _person(globex, Role.OWNER, "owner@globex.example", hashed_password)
    operator = _person(None, "", "operator@veneer.example", hashed_password)
    operator.is_operator = True
    operator.save()
    _, acme_key = issue_key(tenant=acme, name="acme program", scopes=SCOPES, actor=people["owner"])
    _, globex_key = issue_key(tenant=globex, name="globex program", scopes=SCOPES, actor=stranger)
    return Cast(acme, globex, people, stranger, operator, acme_key, globex_key)


@pytest.fixture
def owner(cast: Cast) -> Api:
    return signed_in(cast.owner)


@pytest.fixture
def stranger(cast: Cast) -> Api:
    return signed_in(cast.stranger)


@pytest.fixture
def operator(cast: Cast) -> Api:
    return signed_in(cast.operator)
