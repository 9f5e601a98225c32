"""What operators do about people: whoever is deactivated is out at once, everywhere."""

from django.db import transaction

from tenants.audit import record_audit
from tenants.models import User
from tenants.sessions import end_sessions


@transaction.atomic
def set_active(*, user: User, is_active: bool, actor: str) -> User:
    """A deactivated person's sessions end with them; keys that they issued belong to the tenant and stay."""
    if user.is_active == is_active:
        return user
    user.is_active = is_active
    user.save(update_fields=["is_active"])
    if not is_active:
        end_sessions(user=user)
    action = "person.activate" if is_active else "person.deactivate"
    record_audit(tenant=None, actor=actor, action=action, target=user.id)
    return user
