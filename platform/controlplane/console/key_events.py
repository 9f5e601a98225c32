"""What open pages are told about keys."""

from controlplane.events import publish
from tenants.models import ApiKey


def publish_change(key: ApiKey) -> None:
    """Once the current transaction commits."""
    publish(tenant_id=key.tenant_id, event="key.changed", data={"id": key.id})
