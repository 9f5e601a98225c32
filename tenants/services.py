"""Tenants come to be with a person who runs them."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email, validate_slug
from django.db import IntegrityError, transaction

from tenants.audit import record_audit
from tenants.models import Membership, Role, Tenant, User


class CannotCreate(Exception):
    """field: which of the arguments cannot be used. taken: it is another's already, rather than malformed."""

    def __init__(self, field: str, message: str, *, taken: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        self.taken = taken


@transaction.atomic
def create_tenant(
    *, slug: str, name: str, actor: str, admin_email: str, admin_password: str | None = None
) -> tuple[Tenant, User]:
    """A tenant and its owner. An existing person joins with the password they have: then none may be given.

    Raises CannotCreate, and creates nothing.
    """
    _check(slug=slug, admin_email=admin_email)
    try:
        with transaction.atomic():
            tenant = Tenant.objects.create(slug=slug, name=name)
    except IntegrityError:
        raise CannotCreate("slug", f"slug {slug!r} is taken: choose another", taken=True) from None
    user = _person(admin_email, admin_password)
    Membership.objects.create(tenant=tenant, user=user, role=Role.OWNER)
    details = {"slug": slug, "name": name, "owner": user.id}
    record_audit(tenant=tenant, actor=actor, action="tenant.create", target=tenant.id, details=details)
    return tenant, user


def _check(*, slug: str, admin_email: str) -> None:
    for field, value, validate in (("slug", slug, validate_slug), ("admin_email", admin_email, validate_email)):
        try:
            validate(value)
        except ValidationError as exc:
            raise CannotCreate(field, f"{field} {value!r}: {' '.join(exc.messages)}") from None


def _person(email: str, password: str | None) -> User:
    known = User.objects.filter(email=User.objects.normalize_email(email)).first()
    if known and password:
        raise CannotCreate(
            "admin_email", f"{known.email} has an account already: leave admin_password out to add it", taken=True
        )
    if known:
        return known
    if not password:
        raise CannotCreate("admin_password", f"admin_password is missing: {email} has no account yet")
    try:
        validate_password(password)
    except ValidationError as exc:
        raise CannotCreate("admin_password", f"admin_password: {' '.join(exc.messages)}") from None
    return User.objects.create_user(email, password)
