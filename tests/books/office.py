"""What people agree to and book after the fact: terms, taxes, entries on invoices, credit that runs out."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

from django.db import transaction
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from controlplane.billing.agreements import agree
from controlplane.billing.credit import expire_credit
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.ledger import post
from controlplane.billing.models import EntryKind, Grant, GrantKind, Invoice
from controlplane.billing.profiles import ProfileChanges, change_profile
from controlplane.billing.terms import Terms, Tier
from controlplane.errors import InvalidRequest
from controlplane.inference.alerting import find_alerts
from controlplane.quotas.queries import quota_state
from tenants.sql import run_sync
from tests.books.faults import any_of, attempt, dies, few
from tests.controlplane.money import Customer, everything

OLD = timedelta(days=60)  # so that there is something to close
ZONES = ("UTC", "Pacific/Apia", "America/St_Johns", "Australia/Lord_Howe")
GIVEN = {GrantKind.PROMO: "promo", GrantKind.PAID: "cash"}


class Office(RuleBasedStateMachine):
    acme: Customer
    maker: Customer

    def prepare_office(self) -> None:
        self.papers = 0
        for each in (self.acme, self.maker):
            each.tenant.created_at -= OLD
            each.tenant.save(update_fields=["created_at"])

    @rule(cents=st.integers(0, 5000), included=few, discount=st.integers(0, 100), dies_at=dies)
    def agree(self, cents: int, included: int, discount: int, dies_at: int | None) -> None:
        tiers = (Tier(Decimal("0.00"), Decimal(discount) / 2), Tier(Decimal("0.01"), Decimal(discount)))
        terms = Terms(Decimal(cents).scaleb(-2), included, "volume" if cents % 2 else "graduated", tiers)
        attempt(lambda: agree(tenant=self.acme.tenant, terms=terms, actor="usr"), dies_at)

    @rule(tax=st.decimals(0, 100, places=3), zone=st.sampled_from(ZONES), dies_at=dies)
    def change_profile(self, tax: Decimal, zone: str, dies_at: int | None) -> None:
        changes = ProfileChanges(tax_rate=tax, time_zone=zone)
        attempt(lambda: change_profile(tenant=self.acme.tenant, changes=changes, actor="usr"), dies_at)

    @rule(which=any_of, kind=st.sampled_from(list(EntryKind)), cents=st.integers(1, 3000), dies_at=dies)
    def book(self, which: int, kind: EntryKind, cents: int, dies_at: int | None) -> None:
        invoices = list(everything(Invoice).filter(tenant=self.acme.tenant).order_by("number"))
        if not invoices:
            return
        self.papers += 1
        invoice, amount = invoices[which % len(invoices)], Decimal(cents).scaleb(-2)
        named = {"reason": "because", "actor": "usr", "reference": f"entry {self.papers}"}
        for fault in (dies_at, None):  # sent again until it is heard
            with suppress(InvalidRequest):
                attempt(
                    lambda: book_entry(
                        tenant=self.acme.tenant, invoice_id=invoice.id, kind=kind, amount=amount, **named
                    ),
                    fault,
                )

    @rule(
        amount=st.decimals("0.00000001", "0.0001", places=8), kind=st.sampled_from(list(GIVEN)), ago=few, dies_at=dies
    )
    def give_for_a_time(self, amount: Decimal, kind: GrantKind, ago: int, dies_at: int | None) -> None:
        """Given long ago: its time has been over for so many days."""
        self.papers += 1
        attempt(lambda: self._given(amount, kind, f"for a time {self.papers}", ago), dies_at)

    @transaction.atomic
    def _given(self, amount: Decimal, kind: GrantKind, reference: str, ago: int) -> None:
        tenant = self.acme.tenant
        grant = Grant._base_manager.create(
            tenant=tenant, amount=amount, kind=kind, reference=reference, created_by="usr",
            expires_at=timezone.now() - timedelta(days=ago),
        )  # fmt: skip
        entries = {GIVEN[kind]: amount, "credit": -amount}
        run_sync(post(transaction_id=f"grant:{grant.id}", tenant_id=tenant.id, kind="grant", entries=entries))

    @rule(dies_at=dies)
    def look(self, dies_at: int | None) -> None:
        """For what deserves an alert."""
        attempt(find_alerts, dies_at)

    @rule(dies_at=dies)
    def expire_credit(self, dies_at: int | None) -> None:
        attempt(lambda: expire_credit(lambda tenant: run_sync(quota_state(tenant_id=tenant)).held), dies_at)
