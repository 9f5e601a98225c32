"""Demo data, made once per database: an operator, prices, two tenants with limits, a person and a key for each."""

from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction

from controlplane.billing.models import Price
from controlplane.billing.prices import Rates, set_price
from controlplane.embedded.credentials import OPERATOR_EMAIL, Credentials
from controlplane.quotas.limits import LimitChanges, set_limits
from tenants.key_services import issue_key
from tenants.models import ApiKey, Tenant, User
from tenants.permissions import SCOPES
from tenants.scope import tenant_scope
from tenants.services import create_tenant

ACTOR = "system"
RATES = Rates(input=Decimal("0.50"), cached_input=Decimal("0.05"), output=Decimal("1.50"))
LIMITS = LimitChanges(requests_per_minute=600, tokens_per_minute=200_000, concurrency=32, budget=Decimal(50))
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


def seed_price(base_model: str) -> None:
    """What is served needs a price; one that an operator has set is left alone."""
    if not Price.objects.filter(base_model=base_model).exists():
        set_price(base_model=base_model, rates=RATES, actor=ACTOR)


@transaction.atomic
def seed_tenant(wanted: DemoTenant, credentials: Credentials) -> None:
    tenant = Tenant.objects.filter(slug=wanted.slug).first() or _create(wanted, credentials)
    with tenant_scope(tenant.id):
        is_issued = ApiKey.objects.filter(name=KEY_LABEL, revoked_at=None).exists()
    if not is_issued or not credentials.get(wanted.key_name):
        _, raw = issue_key(tenant=tenant, name=KEY_LABEL, scopes=SCOPES, actor=None)
        credentials.put(wanted.key_name, raw)


def _create(wanted: DemoTenant, credentials: Credentials) -> Tenant:
    tenant, _ = create_tenant(
        slug=wanted.slug, name=wanted.name, actor=ACTOR,
        admin_email=wanted.email, admin_password=credentials.password(wanted.password_name),
    )  # fmt: skip
    set_limits(tenant=tenant, key_id=None, changes=LIMITS, actor=ACTOR)
    return tenant
