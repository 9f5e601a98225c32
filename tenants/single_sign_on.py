"""A tenant's identity provider and its e-mail domains: set up, changed and taken away, each on the record."""

import re
import secrets
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from tenants.audit import record_audit
from tenants.credentials import Session
from tenants.identity import IdentityProvider, LinkedIdentity, SignInDomain
from tenants.members import Refused
from tenants.models import Role, Tenant
from tenants.scope import tenant_scope
from tenants.sealing import seal

# Whoever joins by signing in gets no say over people or money by that.
JOINING_ROLES: Final = (Role.VIEWER, Role.DEVELOPER)
MAX_DOMAINS: Final = 20
_LABEL: Final = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_DOMAIN: Final = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+(?=[^.]*[a-z]){_LABEL}")


@dataclass(frozen=True)
class ProviderSettings:
    """client_secret: None leaves the one there is. endpoints: what the issuer's discovery document says."""

    issuer: str
    client_id: str
    client_secret: str | None
    default_role: str
    is_required: bool
    endpoints: dict[str, Any]


@transaction.atomic
def set_provider(*, tenant: Tenant, actor: str, wanted: ProviderSettings) -> IdentityProvider:
    """Another issuer knows nobody: who was linked is so no more, and who came in through it is out. Raises Refused."""
    assert wanted.default_role in JOINING_ROLES
    with tenant_scope(tenant.id):
        before = IdentityProvider.objects.select_for_update().filter(tenant=tenant).first()
        is_same_issuer = before is not None and before.issuer == wanted.issuer
        # The secret is sent to the issuer: one that was given for another must not be.
        if wanted.client_secret is None and not is_same_issuer:
            text = "client_secret is missing: enter the one that this issuer gave you"
            raise Refused("secret_missing", text, "client_secret")
        row = before or IdentityProvider(tenant=tenant)
        for name in ("issuer", "client_id", "default_role", "endpoints"):
            setattr(row, name, getattr(wanted, name))
        if wanted.client_secret is not None:
            row.sealed_secret = seal(wanted.client_secret)
        row.save()
        if not is_same_issuer:
            LinkedIdentity.objects.filter(provider=row).delete()
            Session.objects.filter(provider=row).delete()
    _set_required(tenant, row, wanted.is_required)
    details = {name: getattr(wanted, name) for name in ("issuer", "client_id", "default_role", "is_required")}
    record_audit(tenant=tenant, actor=actor, action="single_sign_on.set", target=row.id, details=details)
    row.refresh_from_db()
    return row


def _set_required(tenant: Tenant, provider: IdentityProvider, is_required: bool) -> None:
    if is_required and not LinkedIdentity.objects.filter(tenant=tenant, provider=provider).exists():
        raise Refused(
            "nobody_linked",
            "is_required: nobody has come in through this provider yet. Connect your own account first (Security), to "
            "see that it works.",
            "is_required",
        )
    Tenant.objects.filter(id=tenant.id).update(requires_single_sign_on=is_required)


@transaction.atomic
def remove_provider(*, tenant: Tenant, actor: str) -> bool:
    """False where there is none. Sessions that it opened end, and whoever has no password asks for a link to one."""
    with tenant_scope(tenant.id):
        row = provider_of(tenant)
        if row is None:
            return False
        provider_id = row.id
        row.delete()
    Tenant.objects.filter(id=tenant.id).update(requires_single_sign_on=False)
    record_audit(tenant=tenant, actor=actor, action="single_sign_on.remove", target=provider_id)
    return True


def provider_of(tenant: Tenant) -> IdentityProvider | None:
    with tenant_scope(tenant.id):
        return IdentityProvider.objects.filter(tenant=tenant).first()


# --- domains ------------------------------------------------------------------------------------------------------


def domains_of(tenant: Tenant) -> list[SignInDomain]:
    with tenant_scope(tenant.id):
        return list(SignInDomain.objects.filter(tenant=tenant).order_by("name"))


@transaction.atomic
def add_domain(*, tenant: Tenant, name: str, actor: str) -> SignInDomain:
    """Raises Refused."""
    name = name.strip().lower().removeprefix("@")
    if not _DOMAIN.fullmatch(name):
        raise Refused("invalid_domain", f"name {name[:100]!r} is no domain: write it like example.com", "name")
    with tenant_scope(tenant.id):
        known = set(SignInDomain.objects.filter(tenant=tenant).values_list("name", flat=True))
        if name in known:
            raise Refused("domain_known", f"{name} is in the list already", "name")
        if len(known) >= MAX_DOMAINS:
            raise Refused("too_many_domains", f"there are {MAX_DOMAINS} domains: remove one that is not used", "name")
        row = SignInDomain.objects.create(tenant=tenant, name=name, token=secrets.token_hex(16))
    row.refresh_from_db()
    record_audit(tenant=tenant, actor=actor, action="single_sign_on.domain_add", target=row.id, details={"name": name})
    return row


def domain_named(tenant: Tenant, domain_id: str) -> SignInDomain:
    """Raises Refused where the tenant has none of that id."""
    with tenant_scope(tenant.id):
        row = SignInDomain.objects.filter(tenant=tenant, id=domain_id).first()
    if row is None:
        raise Refused("domain_not_found", f"There is no domain {domain_id}.")
    return row


@transaction.atomic
def confirm_domain(*, tenant: Tenant, domain: SignInDomain, actor: str) -> SignInDomain:
    """The caller has seen the proof. Raises Refused where another tenant has proved it before."""
    try:
        with tenant_scope(tenant.id), transaction.atomic():
            rows = SignInDomain.objects.filter(id=domain.id, confirmed_at=None)
            changed = rows.update(confirmed_at=timezone.now())
    except IntegrityError:
        text = f"{domain.name} is confirmed for another tenant: ask the platform's operator"
        raise Refused("domain_taken", text) from None
    if changed:
        details = {"name": domain.name}
        record_audit(
            tenant=tenant, actor=actor, action="single_sign_on.domain_confirm", target=domain.id, details=details
        )
    return domain_named(tenant, domain.id)


@transaction.atomic
def remove_domain(*, tenant: Tenant, domain_id: str, actor: str) -> None:
    """Whoever has such an address comes in by password. Raises Refused."""
    row = domain_named(tenant, domain_id)
    with tenant_scope(tenant.id):
        row.delete()
    details = {"name": row.name}
    record_audit(tenant=tenant, actor=actor, action="single_sign_on.domain_remove", target=domain_id, details=details)
