"""What a person proves themselves with, and where they did: sessions, links to a new password. `tenants.models` holds
the people."""

from django.db import models
from django.db.models.functions import Now

from tenants.ids import new_id

USER = "tenants.User"


def new_session_id() -> str:
    return new_id("ses")


class Session(models.Model):
    """One browser that talks to us. key_digest: SHA-256 of what its cookie carries, so that a copy of this table opens
    nothing. user: None before anybody has signed in. address, user_agent: as of `seen_at`."""

    id = models.CharField(primary_key=True, max_length=32, default=new_session_id, editable=False)
    key_digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(USER, null=True, on_delete=models.CASCADE, related_name="sessions")
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
