"""Invoices add up to the cent, are numbered without gaps, never change, and are corrected by entries alone."""

from datetime import date, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypdf import PdfReader

from controlplane.billing.checks import CHECKS
from controlplane.billing.grants import grant_credit
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.invoice_pdf import invoice_pdf
from controlplane.billing.invoices import invoice_named, invoices_of, open_amount
from controlplane.billing.models import EntryKind, GrantKind, Invoice, InvoiceEntry, LedgerEntry
from controlplane.billing.profiles import ProfileChanges, change_profile
from controlplane.billing.services import record_usage
from controlplane.billing.statements import close_period
from controlplane.errors import Conflict, InvalidRequest, NotFound
from tenants.ids import new_id
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import AT, BASE, Customer, D, another_key, customer_named, everything, side_by_side

SECOND = timedelta(seconds=1)


@pytest.fixture
def acme(db: None) -> Customer:
    return old(customer_named("acme"))


def old(customer: Customer) -> Customer:
    customer.tenant.created_at = AT - timedelta(days=30)
    customer.tenant.save()
    return customer


def use(customer: Customer, tokens: int, at: Any = AT, **more: Any) -> None:
    """At 0.15 dollars per million."""
    counts = {"prompt_tokens": tokens, "cached_tokens": 0, "completion_tokens": 0}
    usage = customer.usage(new_id("req"), **counts, started_at=at, finished_at=at) | more
    run_sync(record_usage(**usage))


def invoice_for(customer: Customer, tokens: int = 0, *, seconds: int = 1) -> Invoice:
    """Use, and close `seconds` after AT."""
    end = AT + seconds * SECOND
    if tokens:
        use(customer, tokens, end - SECOND)
    statement = close_period(tenant=customer.tenant, until=end, actor="usr")
    with tenant_scope(customer.tenant.id):
        return invoices_of(customer.tenant).get(statement=statement)


def book(customer: Customer, invoice: Invoice, kind: str, amount: str, **more: Any) -> InvoiceEntry:
    wanted = {"reason": "because", "actor": "usr"} | more
    return book_entry(tenant=customer.tenant, invoice_id=invoice.id, kind=EntryKind(kind), amount=D(amount), **wanted)


def still_open(customer: Customer, invoice: Invoice) -> Decimal:
    with tenant_scope(customer.tenant.id):
        return open_amount(invoice_named(customer.tenant, invoice.id))


def account(name: str) -> Decimal:
    return sum(LedgerEntry.objects.filter(account_id=name).values_list("amount", flat=True), D(0))


def assert_books_hold() -> None:
    for name, sql in CHECKS.items():
        with connection.cursor() as cursor:
            cursor.execute(sql)
            assert cursor.fetchone()[1] == 0, name


def test_lines_and_tax_add_up_to_the_cent(acme: Customer) -> None:
    change_profile(tenant=acme.tenant, changes=ProfileChanges(tax_rate=D("8.875"), tax_name="Sales tax"), actor="usr")
    for adapter in ("adp_1", "adp_2", None):
        use(acme, 2_222_222, adapter_id=adapter, model=f"{adapter or BASE}@1")  # 0.3333333 dollars each
    invoice = invoice_for(acme)
    assert [line["exact"] for line in invoice.lines] == ["0.3333333"] * 3
    assert sorted(line["amount"] for line in invoice.lines) == ["0.33", "0.33", "0.34"]
    assert (invoice.subtotal, invoice.tax, invoice.total) == (D("1.00"), D("0.09"), D("1.09"))
    assert invoice.carried_out == D("-0.0000001")
    assert (account("platform:tax"), account(f"{acme.tenant.id}:receivable")) == (D("-0.09"), D("1.0899999"))
    assert_books_hold()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    periods=st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=3), min_size=1, max_size=4),
    rate=st.decimals(0, 30, places=3), credit=st.none() | st.integers(1, 10),
)  # fmt: skip
@pytest.mark.django_db
def test_over_many_periods_no_fraction_is_lost(periods: list[list[int]], rate: Decimal, credit: int | None) -> None:
    with transaction.atomic():
        customer = old(customer_named(new_id("t").lower().replace("_", "-")))
        change_profile(tenant=customer.tenant, changes=ProfileChanges(tax_rate=rate), actor="usr")
        if credit:
            grant_credit(tenant=customer.tenant, amount=D(credit) / 100, kind=GrantKind.PROMO, actor="usr")
        for n, uses in enumerate(periods, 1):
            for tokens in uses:
                use(customer, tokens, AT + (n - 1) * SECOND)
            close_period(tenant=customer.tenant, until=AT + n * SECOND, actor="usr")
        invoices = list(everything(Invoice).filter(tenant=customer.tenant).order_by("number"))
        used = sum(sum(uses) for uses in periods) * D("0.15") / 10**6
        paid_by_credit = min(used, D(credit or 0) / 100)
        asked = sum((invoice.subtotal for invoice in invoices), D(0))
        assert asked + (invoices[-1].carried_out if invoices else 0) == used - paid_by_credit
        for invoice in invoices:
            assert invoice.subtotal == sum(D(line["amount"]) for line in invoice.lines)
            assert invoice.total == invoice.subtotal + invoice.tax
        assert_books_hold()
        transaction.set_rollback(True)


def test_fractions_of_a_cent_are_carried_until_they_make_one(acme: Customer) -> None:
    first, second, third = (invoice_for(acme, 20_000, seconds=n) for n in (1, 2, 3))  # 0.003 dollars each
    assert [invoice.total for invoice in (first, second, third)] == [D("0.00"), D("0.01"), D("0.00")]
    assert [invoice.carried_out for invoice in (first, second, third)] == [D("0.003"), D("-0.004"), D("-0.001")]
    assert [line["kind"] for line in second.lines] == ["usage", "carried"]


def test_credit_is_a_line_and_nothing_used_is_no_invoice(acme: Customer) -> None:
    grant_credit(tenant=acme.tenant, amount=D("0.1"), kind=GrantKind.PROMO, actor="usr")
    invoice = invoice_for(acme, 1_000_000)
    assert [(line["kind"], line["amount"]) for line in invoice.lines] == [("usage", "0.15"), ("credit", "-0.10")]
    assert (invoice.subtotal, invoice.total) == (D("0.05"), D("0.05"))
    close_period(tenant=acme.tenant, until=AT + 5 * SECOND, actor="usr")
    assert everything(Invoice).count() == 1


@pytest.mark.django_db(transaction=True)
def test_numbers_have_no_gap_also_where_closes_fail(acme: Customer) -> None:
    customers = [acme, *(old(customer_named(f"t{n}")) for n in range(5))]
    for customer in customers:
        use(customer, 1_000_000)

    def close(customer: Customer, fails: bool) -> None:
        with transaction.atomic():
            close_period(tenant=customer.tenant, until=AT + SECOND, actor="usr")
            if fails:
                raise ValueError

    side_by_side([lambda c=c, n=n: close(c, n % 2 == 0) for n, c in enumerate(customers)])
    side_by_side([lambda c=c: close(c, False) for c in customers])
    assert sorted(everything(Invoice).values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert_books_hold()


def test_what_was_issued_never_changes(acme: Customer) -> None:
    invoice = invoice_for(acme, 1_000_000)
    book(acme, invoice, "payment", "0.10")
    change_profile(tenant=acme.tenant, changes=ProfileChanges(name="Other", tax_rate=D(50)), actor="usr")
    again = everything(Invoice).get()
    assert (again.buyer["name"], again.total) == ("Acme", D("0.15"))
    for table in ("billing_invoice", "billing_invoiceentry"):
        for change in (f"UPDATE {table} SET id = 'x'", f"DELETE FROM {table}"):
            with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute(change)


# --- entries -------------------------------------------------------------------------------------------------------


@pytest.fixture
def taxed(acme: Customer) -> Invoice:
    """10.00 and 1.90 of tax."""
    change_profile(tenant=acme.tenant, changes=ProfileChanges(tax_rate=D(19)), actor="usr")
    use(acme, 66_666_667)
    return invoice_for(acme)


def test_each_entry_moves_its_accounts(acme: Customer, taxed: Invoice) -> None:
    assert (taxed.total, taxed.tax) == (D("11.90"), D("1.90"))
    book(acme, taxed, "payment", "5.00")
    note = book(acme, taxed, "credit_note", "1.19")
    book(acme, taxed, "write_off", "0.71")
    assert (note.tax, note.number) == (D("0.19"), 1)
    assert still_open(acme, taxed) == D("5.00")
    names = ("cash", "tax", "bad_debt")
    assert [account(f"platform:{name}") for name in names] == [D("5.00"), D("-1.71"), D("0.71")]
    assert account(f"{acme.tenant.id}:receivable") == D("5.00") + taxed.carried_out
    assert_books_hold()


def test_a_paid_invoice_that_is_credited_is_refunded(acme: Customer, taxed: Invoice) -> None:
    with pytest.raises(InvalidRequest, match=r"what was paid too much is 0\.00 USD"):
        book(acme, taxed, "refund", "0.01")
    book(acme, taxed, "payment", "11.90")
    book(acme, taxed, "credit_note", "11.90")
    assert still_open(acme, taxed) == D("-11.90")
    book(acme, taxed, "refund", "11.90")
    assert still_open(acme, taxed) == 0
    assert [account(f"platform:{name}") for name in ("cash", "tax")] == [0, 0]
    assert_books_hold()


def test_the_tax_in_many_credit_notes_is_the_invoices(acme: Customer, taxed: Invoice) -> None:
    notes = [book(acme, taxed, "credit_note", amount) for amount in ("3.33", "3.33", "3.33", "1.91")]
    assert sum(note.tax for note in notes) == D("1.90")
    assert [note.number for note in notes] == [1, 2, 3, 4]


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "11.91"])
@pytest.mark.parametrize("kind", ["payment", "credit_note", "write_off", "refund"])
def test_an_entry_has_room_or_is_refused(acme: Customer, taxed: Invoice, kind: str, amount: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        book(acme, taxed, kind, amount)
    assert refused.value.param == "amount"
    assert InvoiceEntry.objects.model._base_manager.count() == 0


def test_a_reference_books_once(acme: Customer, taxed: Invoice) -> None:
    first = book(acme, taxed, "payment", "1.00", reference="bank 1")
    assert book(acme, taxed, "payment", "1.00", reference="bank 1") == first
    with pytest.raises(Conflict, match="bank 1 has booked"):
        book(acme, taxed, "payment", "2.00", reference="bank 1")
    assert still_open(acme, taxed) == D("10.90")


@pytest.mark.django_db(transaction=True)
def test_entries_side_by_side_never_pass_the_total(acme: Customer, taxed: Invoice) -> None:
    results = side_by_side([lambda: book(acme, taxed, "credit_note", "4.00").amount] * 6)
    assert results == {"4.00": 2, "InvalidRequest": 4}
    assert_books_hold()


def test_a_strangers_invoice_is_missing(acme: Customer, taxed: Invoice) -> None:
    globex = customer_named("globex")
    with pytest.raises(NotFound, match=taxed.id):
        book(globex, taxed, "payment", "1.00")


# --- the PDF -------------------------------------------------------------------------------------------------------


def text_of(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(pdf)).pages)


def test_the_pdf_shows_the_stored_document(acme: Customer) -> None:
    changes = ProfileChanges(name="Ünal & <b>Söhne</b>", address="1 Main St\nTown", tax_id="DE1", tax_rate=D(19))
    change_profile(tenant=acme.tenant, changes=changes, actor="usr")
    invoice = invoice_for(acme, 66_666_667)
    text = text_of(invoice_pdf(invoice))
    for wanted in (
        "Invoice INV-000001", "Ünal & <b>Söhne</b>", "1 Main St", "Tax id: DE1", "66,666,667", "10.00", "Tax 19 %",
        "1.90", "11.90", "2026-05-31", invoice.statement_id,
    ):  # fmt: skip
        assert wanted in text, wanted


def test_the_same_invoice_is_the_same_file(acme: Customer) -> None:
    invoice = invoice_for(acme, 1_000_000)
    assert invoice_pdf(invoice) == invoice_pdf(everything(Invoice).get())


def test_a_long_invoice_has_pages_and_all_lines(acme: Customer) -> None:
    for n in range(80):
        use(acme, 1_000_000 + n, adapter_id=f"adp_{n}", model=f"adapter-{n:03d}@1")
    text = text_of(invoice_pdf(invoice_for(acme)))
    assert all(f"adapter-{n:03d}" in text for n in range(80))


def test_letters_outside_latin_1_need_a_font(acme: Customer) -> None:
    change_profile(tenant=acme.tenant, changes=ProfileChanges(name="Ωμέγα"), actor="usr")
    invoice = invoice_for(acme, 1_000_000)
    assert "?????" in text_of(invoice_pdf(invoice))
    assert invoice.buyer["name"] == "Ωμέγα"
    with override_settings(INVOICE_FONT="/nowhere.ttf"), pytest.raises(Exception, match="nowhere"):
        invoice_pdf(invoice)


# --- over HTTP -----------------------------------------------------------------------------------------------------


@pytest.fixture
def mine(cast: Cast) -> Invoice:
    customer = old(customer_named_like(cast))
    return invoice_for(customer, 10_000_000)


def customer_named_like(cast: Cast) -> Customer:
    found = customer_named("other")
    found.tenant = cast.acme
    found.key = another_key(found)
    return found


def test_a_tenant_reads_its_own(mine: Invoice, owner: Api, stranger: Api) -> None:
    status, body = owner.get("invoices")
    [row] = body["data"]
    assert status == 200
    assert (row["number"], row["total"], row["open"], row["state"]) == ("INV-000001", "1.50", "1.50", "overdue")
    full = owner.get(f"invoices/{mine.id}")[1]
    assert (full["buyer"]["name"], full["lines"][0]["amount"], full["entries"]) == ("Acme", "1.50", [])
    pdf = owner.raw("GET", f"invoices/{mine.id}/pdf")
    assert (pdf.status_code, pdf["Content-Type"], pdf.content[:5]) == (200, "application/pdf", b"%PDF-")
    assert pdf["Content-Disposition"] == 'attachment; filename="INV-000001.pdf"'
    assert stranger.get("invoices")[1]["data"] == []
    for path in (f"invoices/{mine.id}", f"invoices/{mine.id}/pdf"):
        assert stranger.get(path)[0] == 404


def test_an_operator_books_and_sees(mine: Invoice, operator: Api, owner: Api, cast: Cast) -> None:
    path = f"operator/tenants/{cast.acme.id}/invoices/{mine.id}"
    status, entry = operator.post(f"{path}/entries", {"kind": "credit_note", "amount": "0.5", "reason": "outage"})
    assert (status, entry["number"], entry["amount"]) == (201, "CRN-000001", "0.50")
    assert operator.post(f"{path}/entries", {"kind": "payment", "amount": "1.00", "reason": "bank"})[0] == 201
    assert (operator.get(path)[1]["state"], len(owner.get(f"invoices/{mine.id}")[1]["entries"])) == ("paid", 2)
    elsewhere = f"operator/tenants/{cast.globex.id}/invoices/{mine.id}"
    assert operator.get(elsewhere)[0] == operator.get(f"{elsewhere}/pdf")[0] == 404
    assert operator.get(f"operator/tenants/{cast.globex.id}/invoices")[1]["data"] == []


def test_the_profile(cast: Cast, owner: Api, operator: Api) -> None:
    assert owner.get("billing-profile")[1]["time_zone"] == "UTC"
    status, body = owner.call("PATCH", "billing-profile", {"time_zone": "Asia/Kolkata", "tax_rate": "0"})
    assert (status, body["time_zone"]) == (200, "Asia/Kolkata")
    status, body = owner.call("PATCH", "billing-profile", {"time_zone": "Mars/Base"})
    assert (status, body["error"]["param"]) == (400, "time_zone")
    path = f"operator/tenants/{cast.acme.id}/billing-profile"
    status, body = operator.call("PATCH", path, {"tax_rate": "8.875", "anchor": "2026-01-15", "payment_days": 30})
    assert (status, body["tax_rate"], body["anchor"], body["time_zone"]) == (
        200, "8.875", date(2026, 1, 15).isoformat(), "Asia/Kolkata",
    )  # fmt: skip
    assert operator.call("PATCH", path, {"tax_rate": "101"})[0] == 400
