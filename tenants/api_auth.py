"""Who calls the management API: a person's session, or a program's key. Both become a `Caller`."""

from dataclasses import dataclass

from django.http import HttpRequest
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from tenants.auth import InvalidKey, Principal, authenticate_plan
from tenants.models import Membership, Role, Tenant, User
from tenants.networks import client_address
from tenants.operating import on_behalf_of
from tenants.permissions import ON_BEHALF, role_can, scopes_can
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.second_factor import has_second_factor
from tenants.sessions import Company, SessionStore, company_of, note_seen
from tenants.sql import run_sync

TENANT_HEADER = "X-Veneer-Tenant"
CSRF_REMEDY = "The page is out of date: reload it. Programs send the cookie `csrftoken` back as header X-CSRFToken."
ADDRESS_NOT_ALLOWED = "address_not_allowed"
SUSPENDED = "tenant_suspended"
NEEDS_SECOND_FACTOR = "second_factor_needed"
NEEDS_SINGLE_SIGN_ON = "single_sign_on_needed"
BARRED_TEXT = {
    SUSPENDED: "This tenant is suspended: its keys are refused and nothing in it can be changed. "
    "Ask the platform's operator.",
    NEEDS_SECOND_FACTOR: "This tenant requires a second factor: set one up on the console's security page first.",
    NEEDS_SINGLE_SIGN_ON: "This tenant requires its members to come in through their company: connect your account on "
    "the console's security page, then sign in that way.",
}


def address_refused(address: str) -> str:
    return f"This key may not be used from {address[:60]}: call from one of its allowed networks, or change them."


@dataclass(frozen=True)
class Caller:
    """`request.user` of every management view.

    tenant: whom the call is about; None for a person who belongs to none, or is barred from theirs. role: of a person,
    or ON_BEHALF. scopes, key: of a key. barred: why a person can do nothing in the tenant that they asked for.
    company: through whose identity provider the person came in, who sees and can do nothing outside that tenant then.
    """

    actor: str  # usr_... or key_...
    tenant: Tenant | None
    user: User | None = None
    role: str | None = None
    scopes: tuple[str, ...] = ()
    key: Principal | None = None
    barred: str | None = None
    company: Company | None = None
    is_authenticated: bool = True

    @property
    def is_operator(self) -> bool:
        return self.user is not None and self.user.is_operator and self.company is None

    def can(self, action: str) -> bool:
        if self.tenant is None:
            return False
        return role_can(self.role, action) if self.role else scopes_can(self.scopes, action)


class SessionAuthentication(authentication.SessionAuthentication):
    """Django's session, CSRF enforced. `X-Veneer-Tenant` chooses among the person's tenants; a foreign one is a 404."""

    def authenticate(self, request: Request) -> tuple[Caller, None] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        user = found[0]
        assert isinstance(user, User)
        note_seen_now(request._request)
        return caller_for(user, request.headers.get(TENANT_HEADER), company_of(request._request.session)), None

    def enforce_csrf(self, request: Request | HttpRequest) -> None:
        try:
            super().enforce_csrf(request)  # type: ignore[arg-type]
        except exceptions.PermissionDenied:
            raise exceptions.PermissionDenied(CSRF_REMEDY, code="csrf_failed") from None


def note_seen_now(request: HttpRequest) -> None:
    """The session is in use: when, from where, with what."""
    store = request.session
    assert isinstance(store, SessionStore)
    note_seen(store, address=client_address(request.META), user_agent=request.headers.get("User-Agent", ""))


def caller_for(user: User, tenant_id: str | None, company: Company | None = None) -> Caller:
    """The person in the tenant asked for, or in their first. Foreign and missing tenants are both NotFound. An operator
    who acts for a tenant names it: it is never the first."""
    rows = memberships_of(user, company)
    membership = next((m for m in rows if not tenant_id or m.tenant_id == tenant_id), None)
    if membership is None and tenant_id:
        found = on_behalf_of(user) if company is None else None
        if found is not None and found.tenant_id == tenant_id:
            return _person_in(found.tenant, user, ON_BEHALF, company)
        raise exceptions.NotFound(f"{TENANT_HEADER}: there is no tenant {tenant_id[:40]!r} that you belong to")
    if membership is None:
        return Caller(actor=user.id, tenant=None, user=user, company=company)
    return _person_in(membership.tenant, user, membership.role, company)


def _person_in(tenant: Tenant, user: User, role: str, company: Company | None) -> Caller:
    if barred := why_barred(tenant, user, role, company):
        return Caller(actor=user.id, tenant=None, user=user, barred=barred, company=company)
    return Caller(actor=user.id, tenant=tenant, user=user, role=role, company=company)


def memberships_of(user: User, company: Company | None = None) -> list[Membership]:
    """With their tenants, the open and then the oldest first; of whoever came through a company that one alone. Only a
    look at all tenants' rows tells them."""
    with tenant_scope(ALL_TENANTS):
        rows = Membership.objects.filter(user=user).select_related("tenant")
        if company is not None:
            rows = rows.filter(tenant_id=company.tenant_id)
        return list(rows.order_by("-tenant__is_active", "created_at", "id"))


def why_barred(tenant: Tenant, user: User, role: str, company: Company | None) -> str | None:
    """Why a member can do nothing in their tenant; None where they can. Whoever came through the tenant's own identity
    provider has proved what the tenant asks for there. An owner gets in without it: providers fail."""
    if not tenant.is_active:
        return SUSPENDED
    if company is not None:
        return None
    if tenant.requires_single_sign_on and role not in (Role.OWNER, ON_BEHALF):
        return NEEDS_SINGLE_SIGN_ON
    if tenant.requires_second_factor and not has_second_factor(user):
        return NEEDS_SECOND_FACTOR
    return None


def bearer_key(request: Request | HttpRequest) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


class KeyAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer vnr_...`"""

    def authenticate(self, request: Request) -> tuple[Caller, None] | None:
        raw = bearer_key(request)
        if raw is None:
            return None
        try:
            principal = run_sync(authenticate_plan(raw), tenant=ALL_TENANTS)
        except InvalidKey:
            raise exceptions.AuthenticationFailed(
                "The API key is not valid: it is mistyped, expired or revoked. Issue a new one in the console.",
                code="invalid_api_key",
            ) from None
        address = client_address(request.META)
        if not principal.may_call_from(address):
            raise exceptions.PermissionDenied(address_refused(address), code=ADDRESS_NOT_ALLOWED)
        with tenant_scope(principal.tenant_id):
            tenant = Tenant.objects.get(id=principal.tenant_id)
        if request.headers.get(TENANT_HEADER, tenant.id) != tenant.id:
            raise exceptions.NotFound(f"{TENANT_HEADER}: the key belongs to another tenant; leave the header out")
        return Caller(actor=principal.key_id, tenant=tenant, scopes=principal.scopes, key=principal), None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
