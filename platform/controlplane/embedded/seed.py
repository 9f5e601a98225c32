"""Demo data, made once per database: an operator, two tenants, a person and a key for each."""

from dataclasses import dataclass

from django.db import transaction

from controlplane.embedded.credentials import Credentials
from tenants.auth import issue_key
from tenants.models import ApiKey, Membership, Role, Tenant, User
from tenants.permissions import SCOPES
from tenants.scope import tenant_scope

OPERATOR_EMAIL = "operator@veneer.example"
KEY_LABEL = "demo key of this home"


@dataclass(frozen=True)
class DemoTenant:
    """adapters: folders of `examples/adapters` that become this tenant's."""

    slug: str
    name: str
    adapters: tuple[str, ...]

    @property
    def email(self) -> str:
        return f"admin@{self.slug}.example"

    @property
    def password_name(self) -> str:
        return f"{self.slug}_password"

    @property
    def key_name(self) -> str:
        return f"{self.slug}_key"


DEMO_TENANTS = (
    DemoTenant("acme", "Acme", ("pirate", "json")),
    DemoTenant("globex", "Globex", ("sql", "shout")),
)


def seed_operator(credentials: Credentials) -> None:
    """The password is written down before the account exists, so a crash between the two loses nothing."""
    if not User.objects.filter(email=OPERATOR_EMAIL).exists():
        User.objects.create_user(OPERATOR_EMAIL, credentials.password("operator_password"), is_operator=True)


@transaction.atomic
def seed_tenant(wanted: DemoTenant, credentials: Credentials) -> Tenant:
    tenant, _ = Tenant.objects.get_or_create(slug=wanted.slug, defaults={"name": wanted.name})
    user = User.objects.filter(email=wanted.email).first()
    if user is None:
        user = User.objects.create_user(wanted.email, credentials.password(wanted.password_name))
    Membership.objects.get_or_create(tenant=tenant, user=user, defaults={"role": Role.ADMIN})
    with tenant_scope(tenant.id):
        is_issued = ApiKey.objects.filter(name=KEY_LABEL, revoked_at=None).exists()
    if not is_issued or not credentials.get(wanted.key_name):
        _, raw = issue_key(tenant=tenant, name=KEY_LABEL, scopes=SCOPES, actor=user)
        credentials.put(wanted.key_name, raw)
    return tenant
