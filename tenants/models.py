"""Who is asking: tenants, the people in them, and the keys their programs carry."""

import secrets
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Now

from tenants.ids import new_id
from tenants.scope import TenantManager


def new_tenant_id() -> str:
    return new_id("ten")


def new_user_id() -> str:
    return new_id("usr")


def new_membership_id() -> str:
    return new_id("mem")


def new_invitation_id() -> str:
    return new_id("inv")


def new_key_id() -> str:
    return new_id("key")


def new_cache_salt() -> str:
    return secrets.token_hex(16)


class Role(models.TextChoices):
    """What a membership may do; `tenants.permissions` has the table."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    BILLING = "billing"
    VIEWER = "viewer"


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str, **fields: object) -> "User":
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """Nobody remembers how they capitalised their address, and two people never differ by that."""
        return (email or "").strip().lower()

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=self.normalize_email(username))


class User(AbstractBaseUser):
    """A person. An operator runs the platform and belongs to no tenant by virtue of that."""

    id = models.CharField(primary_key=True, max_length=32, default=new_user_id, editable=False)
    email = models.EmailField(unique=True)
    is_operator = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()


class Tenant(models.Model):
    """A customer. `cache_salt` keeps its prefix-cache entries apart from everybody else's (rule 1).

    requires_second_factor: members without one can do nothing here but be told so. requires_single_sign_on: nor can
    those who did not come in through its identity provider, owners excepted.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_tenant_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    cache_salt = models.CharField(max_length=32, default=new_cache_salt, editable=False)
    is_active = models.BooleanField(default=True)
    requires_second_factor = models.BooleanField(default=False)
    requires_single_sign_on = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    id = models.CharField(primary_key=True, max_length=32, default=new_membership_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["Membership"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_tenant"),
        ]


class Invitation(models.Model):
    """Somebody is asked to join. token_digest: SHA-256 of what the link carries. Open while neither accepted, nor
    revoked, nor past `expires_at`."""

    id = models.CharField(primary_key=True, max_length=32, default=new_invitation_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role)
    invited_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    token_digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = TenantManager["Invitation"]()


class ApiKey(models.Model):
    """`vnr_<prefix>_<secret>`: the prefix finds the row, the HMAC of the whole proves it. The key itself is not kept.

    scopes: a subset of tenants.permissions.SCOPES. expires_at and revoked_at are exclusive instants.
    hidden: made by the console for its playground; not listed.
    allowed_models: names of adapters and of the base model; None = all of the tenant's, empty = none.
    allowed_networks: as `tenants.networks` writes them; None = from anywhere.
    old_*: the text that a rotation replaced, good until `old_until`. The row stays, with its limits and its usage.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_key_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    pepper_version = models.IntegerField()
    last4 = models.CharField(max_length=4)
    scopes = models.JSONField(default=list)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    hidden = models.BooleanField(default=False)
    allowed_models = models.JSONField(null=True)
    allowed_networks = models.JSONField(null=True)
    old_prefix = models.CharField(max_length=16, unique=True, null=True)
    old_digest = models.CharField(max_length=64, null=True)
    old_pepper_version = models.IntegerField(null=True)
    old_until = models.DateTimeField(null=True)
    rotated_at = models.DateTimeField(null=True)

    objects = TenantManager["ApiKey"]()


class AuditRow(models.Model):
    """Who did what, in the same transaction as the deed. Append-only: the application has no right to update or
    delete, and a trigger refuses both to everybody."""

    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.PROTECT, related_name="+")
    actor = models.CharField(max_length=64)  # usr_..., key_..., or "system"
    action = models.CharField(max_length=64)  # "key.issue", "adapter.create", ...
    target = models.CharField(max_length=64)
    details = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["AuditRow"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-at", "-id"], name="audit_newest_first")
        ]


class SignInAttempts(models.Model):
    """Sign-ins tried for an account from an address since `since`; `tenants.lockout` counts and forgets them."""

    account = models.CharField(max_length=64)  # SHA-256 of the address typed
    address = models.CharField(max_length=64)
    attempts = models.IntegerField()
    since = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "address"], name="one_count_per_account_and_address"),
        ]


from tenants import answers as answers  # noqa: E402  # Django finds models through this module
from tenants import credentials as credentials  # noqa: E402
from tenants import identity as identity  # noqa: E402
