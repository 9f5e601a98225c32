"""Records that disagree, once somebody has looked: what was found and done, on the record."""

from django.db import transaction
from django.utils import timezone

from controlplane.billing.models import Discrepancy
from tenants.audit import record_audit


@transaction.atomic
def resolve_discrepancy(*, discrepancy_id: int, note: str, actor: str) -> Discrepancy | None:
    """The first resolution stays. None: there is no such discrepancy."""
    rows = Discrepancy.objects.filter(id=discrepancy_id)
    if rows.filter(resolved_at=None).update(resolved_at=timezone.now(), resolved_by=actor, note=note):
        details = {"note": note}
        record_audit(
            tenant=None, actor=actor, action="discrepancy.resolve", target=str(discrepancy_id), details=details
        )
    return rows.first()
