"""Who is let in by a tenant's identity provider: members of that tenant, and nobody else.

A provider is run by a tenant, and a tenant is a stranger to all others. So it vouches only for people of its own tenant
and domains; it takes over no account (its owner connects it, with their password); and a session that it opened shows
that tenant alone, whatever else the person belongs to.
"""

from dataclasses import dataclass

from django.db import transaction

from tenants.audit import record_audit
from tenants.identity import IdentityProvider, LinkedIdentity, SignInDomain
from tenants.members import Refused
from tenants.models import Membership, Tenant, User
from tenants.notices import Change, record_change
from tenants.scope import ALL_TENANTS, tenant_scope


@dataclass(frozen=True)
class Proven:
    """Whom the provider has signed for. email: an address that it says it has verified, lower case."""

    issuer: str
    subject: str
    email: str

    @property
    def domain(self) -> str:
        return self.email.rpartition("@")[2]


def provider_for_email(email: str) -> IdentityProvider | None:
    """By a domain that its tenant has proved to be its own."""
    domain = User.objects.normalize_email(email).rpartition("@")[2]
    with tenant_scope(ALL_TENANTS):
        row = SignInDomain.objects.filter(name=domain, confirmed_at__isnull=False, tenant__is_active=True).first()
        return _with_tenant(tenant_id=row.tenant_id) if row else None


def provider_by_slug(slug: str) -> IdentityProvider | None:
    with tenant_scope(ALL_TENANTS):
        return _with_tenant(tenant__slug=slug)


def provider_by_id(provider_id: str) -> IdentityProvider | None:
    with tenant_scope(ALL_TENANTS):
        return _with_tenant(id=provider_id)


def _with_tenant(**which: str) -> IdentityProvider | None:
    rows = IdentityProvider.objects.filter(tenant__is_active=True, **which)
    return rows.select_related("tenant").first()


@transaction.atomic
def admit(*, provider: IdentityProvider, who: Proven) -> User:
    """The person who is in. Somebody new joins the tenant, where the domain is proved to be the tenant's. Raises
    Refused."""
    with tenant_scope(provider.tenant_id):
        IdentityProvider.objects.select_for_update().get(id=provider.id)  # two first sign-ins of one person at once
        domain = _domain(provider.tenant, who)
        links = LinkedIdentity.objects.filter(provider=provider, issuer=who.issuer, subject=who.subject)
        link = links.select_related("user").first()
        if link is None:
            return _join(provider, who, domain)
        is_member = Membership.objects.filter(tenant=provider.tenant, user=link.user).exists()
    if not is_member or not link.user.is_active:
        name = provider.tenant.name
        raise Refused("not_a_member", f"You are no member of {name} any more: ask an owner or admin of it.")
    return link.user


def _domain(tenant: Tenant, who: Proven) -> SignInDomain:
    row = SignInDomain.objects.filter(tenant=tenant, name=who.domain).first()
    if row is None:
        raise Refused(
            "domain_not_allowed",
            f"{who.email} is not of a domain that {tenant.name} lets in: ask an owner or admin of it to add yours.",
        )
    return row


def _join(provider: IdentityProvider, who: Proven, domain: SignInDomain) -> User:
    tenant = provider.tenant
    if User.objects.filter(email=who.email).exists():
        raise Refused(
            "link_needed",
            f"{who.email} has an account already: sign in with its password, then connect it under Security.",
        )
    if domain.confirmed_at is None:
        raise Refused(
            "not_invited",
            f"Nobody joins {tenant.name} with an address at {domain.name} by signing in, because it has not confirmed "
            "that domain: ask an owner or admin of it to invite you.",
        )
    user = User(email=who.email)
    user.set_unusable_password()
    user.save()
    Membership.objects.create(tenant=tenant, user=user, role=provider.default_role)
    link = _new_link(provider, who, user)
    details = {"single_sign_on": link.id, "role": provider.default_role}
    record_audit(tenant=tenant, actor=user.id, action="member.join", target=user.id, details=details)
    return user


@transaction.atomic
def link(*, provider: IdentityProvider, who: Proven, user: User) -> LinkedIdentity:
    """user: has proved to be the account's owner. Raises Refused."""
    tenant = provider.tenant
    with tenant_scope(tenant.id):
        IdentityProvider.objects.select_for_update().get(id=provider.id)
        _domain(tenant, who)
        if not Membership.objects.filter(tenant=tenant, user=user).exists():
            raise Refused("not_a_member", f"You are no member of {tenant.name}: ask an owner or admin to invite you.")
        # Or a colleague at an open browser would connect it to themselves.
        if who.email != user.email:
            raise Refused(
                "another_account",
                f"Your company knows you as {who.email}, and this account is {user.email}: only the same can be "
                "connected.",
            )
        if LinkedIdentity.objects.filter(provider=provider, user=user).exists():
            raise Refused("linked_already", "Your account is connected already: disconnect it first.")
        if LinkedIdentity.objects.filter(provider=provider, issuer=who.issuer, subject=who.subject).exists():
            raise Refused("linked_already", "Your company's account is connected to another one here.")
        made = _new_link(provider, who, user)
    record_change(user=user, change=Change.COMPANY_LINKED, target=made.id, details={"tenant": tenant.id})
    record_audit(tenant=tenant, actor=user.id, action="single_sign_on.link", target=user.id)
    return made


def _new_link(provider: IdentityProvider, who: Proven, user: User) -> LinkedIdentity:
    return LinkedIdentity.objects.create(
        tenant_id=provider.tenant_id, provider=provider, issuer=who.issuer, subject=who.subject, user=user
    )


@transaction.atomic
def unlink(*, user: User, link_id: str) -> bool:
    """False where the person has no such link."""
    with tenant_scope(ALL_TENANTS):
        row = LinkedIdentity.objects.filter(user=user, id=link_id).select_related("tenant").first()
        if row is None:
            return False
        row.delete()
    record_change(user=user, change=Change.COMPANY_UNLINKED, target=link_id, details={"tenant": row.tenant_id})
    record_audit(tenant=row.tenant, actor=user.id, action="single_sign_on.unlink", target=user.id)
    return True


def links_of(user: User) -> list[LinkedIdentity]:
    with tenant_scope(ALL_TENANTS):
        return list(LinkedIdentity.objects.filter(user=user).select_related("tenant", "provider"))


def providers_for(user: User) -> list[IdentityProvider]:
    """Of the tenants that the person belongs to."""
    with tenant_scope(ALL_TENANTS):
        rows = IdentityProvider.objects.filter(tenant__memberships__user=user, tenant__is_active=True)
        return list(rows.select_related("tenant").order_by("tenant__name", "id"))
