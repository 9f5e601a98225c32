"""The companies come: tenants, their people, who join by invitation, their browsers, and the keys of their programs."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

from controlplane.embedded.credentials import Credentials
from controlplane.embedded.month.cast import Company, Person
from controlplane.embedded.month.clock import made_at
from tenants.invitations import accept, invite
from tenants.key_services import Reach, change_key, issue_key, revoke_key, rotate_key
from tenants.models import ApiKey, Role, Tenant, User
from tenants.permissions import SCOPES
from tenants.scope import tenant_scope
from tenants.services import create_tenant
from tenants.sessions import SessionStore, note_seen

_BROWSERS: Final = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_5) AppleWebKit/605.1.15 Version/18.5 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Mobile/15E148 Safari/604.1",
)
_BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
PROGRAM_SCOPES: Final = ("inference", "usage:read")


@dataclass
class House:
    """A company as it came to be. people, keys: by name."""

    company: Company
    tenant: Tenant
    people: dict[str, User] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)

    @property
    def owner(self) -> User:
        return self.people[self.company.owner.name]


def move_in(company: Company, *, operator: User, credentials: Credentials, at: datetime) -> House:
    """The owner's password is written down before the account exists, as `make up` does it."""
    owner = company.owner
    with made_at(at):
        tenant, user = create_tenant(
            slug=company.slug, name=company.name, actor=operator.id, admin_email=company.email(owner.name),
            admin_password=credentials.password(company.password_name),
        )  # fmt: skip
    house = House(company, tenant, {owner.name: user})
    for days, person in enumerate(company.people[1:], 1):
        with made_at(at + timedelta(hours=3 + 7 * days)):
            house.people[person.name] = _join(house, person, credentials)
    for hours, key in enumerate(company.keys):
        _issue(house, key.name, at + timedelta(hours=5 + 3 * hours))
    return house


def _join(house: House, person: Person, credentials: Credentials) -> User:
    company = house.company
    _, token = invite(
        tenant=house.tenant, email=company.email(person.name), role=person.role, actor=house.owner, own_role=Role.OWNER
    )
    return accept(token=token, user=None, password=credentials.password(f"{company.slug}_{person.name}_password"))


def _issue(house: House, name: str, at: datetime) -> None:
    [wanted] = [key for key in house.company.keys if key.name == name]
    scopes = SCOPES if name == house.company.keys[0].name else PROGRAM_SCOPES
    reach = Reach(allowed_models=list(wanted.models) if wanted.models else None)
    with made_at(at):
        house.keys[name], _ = issue_key(
            tenant=house.tenant, name=name, scopes=scopes, actor=house.people[wanted.person], hidden=wanted.hidden,
            reach=reach,
        )  # fmt: skip


def go_on(house: House, now: datetime) -> None:
    """What becomes of keys and browsers by the end of the month, with an invitation that nobody has answered yet."""
    last = house.company.keys[-1].name
    with tenant_scope(house.tenant.id):
        if last == "old chat":
            with made_at(now - timedelta(days=9)):
                revoke_key(tenant=house.tenant, key_id=house.keys[last].id, actor=house.owner.id)
        if last == "intern project":
            with made_at(now - timedelta(days=12)):
                change_key(
                    tenant=house.tenant, key_id=house.keys[last].id, actor=house.owner.id,
                    changes={"expires_at": now + timedelta(days=4)},
                )  # fmt: skip
        with made_at(now - timedelta(hours=20)):
            if last == "notebook":
                rotate_key(
                    tenant=house.tenant, key_id=house.keys[last].id, actor=house.people["dana"].id,
                    grace=timedelta(days=2),
                )  # fmt: skip
            invite(
                tenant=house.tenant, email=house.company.email("new.colleague"), role=Role.DEVELOPER,
                actor=house.owner, own_role=Role.OWNER,
            )  # fmt: skip
    for number, user in enumerate(house.people.values()):
        for browser in range(1 + (number == 0)):
            with made_at(now - timedelta(days=1 + number, hours=5 * browser)):
                place = number + browser
                _open_browser(user, _BROWSERS[place % len(_BROWSERS)], f"203.0.113.{20 + place}")


def _open_browser(user: User, browser: str, address: str) -> None:
    store = SessionStore()
    store[SESSION_KEY] = user.id
    store[BACKEND_SESSION_KEY] = _BACKEND
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    note_seen(store, address=address, user_agent=browser)


def note_last_use(house: House, last: dict[str, datetime]) -> None:
    """Keys say when they were used last; the door writes its own now. last: by key."""
    with tenant_scope(house.tenant.id):
        for name, at in last.items():
            ApiKey.objects.filter(id=house.keys[name].id).update(last_used_at=at)
