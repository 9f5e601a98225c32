"""What a person proves themselves with, and where they did: sessions, links to a new password, second factors.
`tenants.models` holds the people."""

from django.db import models
from django.db.models.functions import Now

from tenants.ids import new_id

USER = "tenants.User"


def new_session_id() -> str:
    return new_id("ses")


def new_on_behalf_id() -> str:
    return new_id("onb")


def new_passkey_id() -> str:
    return new_id("pas")


class Session(models.Model):
    """One browser that talks to us. key_digest: SHA-256 of what its cookie carries, so that a copy of this table opens
    nothing. user: None before anybody has signed in. provider: the identity provider through which they did; the
    session ends with it. address, user_agent: as of `seen_at`."""

    id = models.CharField(primary_key=True, max_length=32, default=new_session_id, editable=False)
    key_digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(USER, null=True, on_delete=models.CASCADE, related_name="sessions")
    provider = models.ForeignKey("tenants.IdentityProvider", null=True, on_delete=models.CASCADE, related_name="+")
    data = models.TextField()
    address = models.CharField(max_length=64, default="")
    user_agent = models.CharField(max_length=300, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    seen_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(db_index=True)


class PasswordReset(models.Model):
    """A link to a new password. token_digest: SHA-256 of what it carries. issued_by: an operator; None where the person
    asked for it by mail. Open while not used and not past `expires_at`."""

    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="+")
    issued_by = models.ForeignKey(USER, null=True, on_delete=models.SET_NULL, related_name="+")
    token_digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Totp(models.Model):
    """The app that shows a person six digits. sealed_secret: `tenants.sealing`. confirmed_at: None until a first code
    was right. last_step: the time step of the last code that was taken; it and those before are taken no more."""

    user = models.OneToOneField(USER, primary_key=True, on_delete=models.CASCADE, related_name="totp")
    sealed_secret = models.TextField()
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)


class RecoveryCode(models.Model):
    """Good once, where the second factor is lost. digest: HMAC with the pepper of `pepper_version`."""

    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)
    pepper_version = models.IntegerField()
    used_at = models.DateTimeField(null=True)


class Passkey(models.Model):
    """A WebAuthn credential. key_id: as browsers name it, base64url. credential: its public key and id, as CBOR.
    rp_id: the host that it was made for; it answers to no other. sign_count: of the last use."""

    id = models.CharField(primary_key=True, max_length=32, default=new_passkey_id, editable=False)
    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=100)
    rp_id = models.CharField(max_length=255)
    key_id = models.CharField(max_length=1400, unique=True)
    credential = models.BinaryField()
    sign_count = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    used_at = models.DateTimeField(null=True)


class SecurityNotice(models.Model):
    """A mail to a person that is not sent yet: what changed about how they sign in (`tenants.notices`)."""

    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="+")
    change = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    mail_at = models.DateTimeField(db_default=Now(), db_index=True)


class OnBehalf(models.Model):
    """An operator acts for a tenant that they do not belong to, for a stated reason. Over at `expires_at` or
    `ended_at`, exclusive, whichever is first."""

    id = models.CharField(primary_key=True, max_length=32, default=new_on_behalf_id, editable=False)
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="+")
    operator = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=300)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
