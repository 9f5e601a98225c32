"""A person's way to their company's identity provider and back."""

from typing import Any

from django.utils import timezone

from tenants.identity import SignInDomain
from tenants.models import Tenant, User
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in
from tests.controlplane.oidc_provider import CLIENT_ID, CLIENT_SECRET, Claims, Provider

NEW = {"sub": "u-1", "email": "New@Acme.example"}


def set_up(api: Api, provider: Provider, **more: Any) -> tuple[int, Any]:
    body = {
        "issuer": provider.issuer, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "default_role": "viewer",
    }  # fmt: skip
    return api.put("tenant/single-sign-on", body | more)


def add_domain(tenant: Tenant, name: str, *, confirmed: bool = True) -> SignInDomain:
    at = timezone.now() if confirmed else None
    return SignInDomain.objects.create(tenant=tenant, name=name, token="t", confirmed_at=at)


def come_in(
    provider: Provider, claims: Claims, *, api: Api | None = None, tenant: str = "acme"
) -> tuple[Api, int, Any]:
    api = api or Api()
    status, body = api.post("session/company", {"tenant": tenant})
    assert status == 200, body
    return (api, *api.post("session/company/finish", provider.visit(body["url"], **claims)))


def connect(cast: Cast, provider: Provider, user: User, *, sub: str = "u-own") -> Api:
    """The person, signed in with the password, connects their account."""
    api = signed_in(user)
    status, body = api.post("account/companies", {"tenant": cast.acme.id, "password": PASSWORD})
    assert status == 200, body
    back = provider.visit(body["url"], sub=sub, email=user.email)
    status, body = api.post("session/company/finish", back)
    assert status == 200, body
    return api


def code_of(body: Any) -> str:
    return str(body["error"]["code"])
