"""What payment providers say, brought into the books: each notice once, whatever order they come in.

A notice is kept in the transaction of its effect. The effect is worked out from the state that the provider reports,
never from the message as such, so that two messages about one thing have it once, too.
"""

from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.billing.grants import grant_credit
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.invoices import invoice_named, open_amount
from controlplane.billing.models import (
    EntryKind,
    GrantKind,
    Payment,
    PaymentKind,
    PaymentState,
    ProviderNotice,
    TakenBack,
)
from controlplane.billing.payment_provider import Back, Notice, NotPaid, Paid
from controlplane.billing.reversals import settle_reversals
from controlplane.billing.rounding import NOTHING
from controlplane.billing.services import open_discrepancy
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync

_LOCK: Final = 0x5041594D


@transaction.atomic
def take_notice(provider: str, notice: Notice) -> bool:
    """True if it had an effect that no other message had before."""
    with tenant_scope(ALL_TENANTS):
        _one_at_a_time()
        kept = {"kind": notice.kind[:100]}
        if not ProviderNotice.objects.get_or_create(id=f"{provider}:{notice.id}", defaults=kept)[1]:
            return False
        match notice.fact:
            case Paid() as paid:
                return _take_paid(paid)
            case NotPaid(payment_id):
                started = Payment.objects.filter(id=payment_id, state=PaymentState.STARTED)
                return bool(started.update(state=PaymentState.FAILED))
            case Back() as back:
                return _take_back(provider, notice, back)
        return False


def _one_at_a_time() -> None:
    """A refund and the payment it is of may be told at the same moment: whoever comes second sees the first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _take_paid(paid: Paid) -> bool:
    if not (paid.payment_id or "").startswith("pay_"):
        return False  # something else that is sold under the same key
    payment = Payment.objects.select_for_update().filter(id=paid.payment_id).first()
    if payment is None:
        _doubt("payment_unknown", paid.session_id, {"payment_id": paid.payment_id, "amount": f"{paid.amount:f}"})
        return False
    if payment.state == PaymentState.PAID:
        return False
    got_it = (paid.amount, paid.currency.lower(), paid.session_id)
    if got_it != (payment.amount, payment.currency, payment.session_id):  # of other pages the payer may choose the name
        asked, got = (f"{each.amount:.2f} {each.currency} on {each.session_id}" for each in (payment, paid))
        _doubt("payment_differs", payment.id, {"asked": asked, "paid": got})
        return False
    _book(payment)
    Payment.objects.filter(id=payment.id).update(
        state=PaymentState.PAID, paid_at=timezone.now(), session_id=paid.session_id, intent_id=paid.intent_id
    )
    payment.refresh_from_db()
    settle_reversals(payment)  # which may have been heard of first
    return True


def _book(payment: Payment) -> None:
    """What the invoice still asks for is paid; what is above that, as all that was bought in advance, is credit."""
    tenant, rest, actor = payment.tenant, payment.amount, payment.created_by
    if payment.kind == PaymentKind.INVOICE:
        assert payment.invoice_id is not None
        with tenant_scope(tenant.id):
            asked = max(NOTHING, open_amount(invoice_named(tenant, payment.invoice_id)))
        part = min(rest, asked)
        if part:
            book_entry(
                tenant=tenant, invoice_id=payment.invoice_id, kind=EntryKind.PAYMENT, amount=part,
                reason=f"paid through {payment.provider}", reference=payment.id, actor=actor,
            )  # fmt: skip
        rest -= part
    if rest:
        grant_credit(tenant=tenant, amount=rest, kind=GrantKind.PAID, reference=payment.id, actor=actor)


def _take_back(provider: str, notice: Notice, back: Back) -> bool:
    row, is_first = TakenBack.objects.select_for_update().get_or_create(
        provider=provider, ref=back.ref,
        defaults={"intent_id": back.intent_id, "amount": back.amount, "currency": back.currency, "at": notice.at},
    )  # fmt: skip
    # Of two at the same second the one that came to less: what fails, or comes again, was taken before.
    newer = Q(at__lt=notice.at) | Q(at=notice.at, amount__gte=back.amount)
    later = TakenBack.objects.filter(newer, id=row.id)
    if not is_first and not later.update(amount=back.amount, at=notice.at):
        return False  # something later was heard before
    payment = Payment.objects.select_for_update().filter(intent_id=back.intent_id, provider=provider).first()
    if payment is None:
        return False  # not ours, or not yet
    if back.currency.lower() != payment.currency:
        _doubt("payment_differs", payment.id, {"asked": payment.currency, "taken_back": back.currency})
        return False
    return settle_reversals(payment)


def _doubt(kind: str, what: str, details: dict[str, Any]) -> None:
    """Money that is not booked: an operator has to look."""
    run_sync(open_discrepancy(kind=kind, request_id=what[:80], details=details))
