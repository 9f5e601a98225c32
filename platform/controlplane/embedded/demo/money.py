"""Invoices whose lines add up, and what the platform earned beside what the device's time cost."""

from decimal import Decimal

from rich.console import Console
from rich.table import Table

from controlplane.currency import currency
from controlplane.embedded.client import JSON, Client
from controlplane.embedded.demo.report import WIDTH
from controlplane.embedded.demo.steps import expect
from controlplane.embedded.terminal import show

COLUMNS = ("requests", "prefill_seconds", "decode_seconds", "revenue", "cost", "margin", "margin_percent")


def expect_invoice(session: Client) -> str:
    """The newest invoice: its lines, its tax and its total agree, and it is there as a PDF."""
    newest = session.get("/api/v1/invoices")["data"][0]
    invoice = session.get(f"/api/v1/invoices/{newest['id']}")
    lines = sum((Decimal(line["amount"]) for line in invoice["lines"]), Decimal(0))
    expect(lines == Decimal(invoice["subtotal"]), f"the lines come to {lines}, the invoice says {invoice['subtotal']}")
    total = Decimal(invoice["subtotal"]) + Decimal(invoice["tax"])
    expect(total == Decimal(invoice["total"]), f"subtotal and tax come to {total}, the invoice says {invoice['total']}")
    pdf = session.get_bytes(f"/api/v1/invoices/{newest['id']}/pdf")
    expect(pdf.startswith(b"%PDF-") and len(pdf) > 1000, "the invoice should be there as a PDF")
    asked = f"{invoice['total']} {invoice['currency']}"
    return f"{invoice['number']}: {len(invoice['lines'])} lines, {asked}, {len(pdf):,} bytes of PDF"


def show_margin(operator: Client) -> None:
    """The rows must come to the total, and what is not idle to the rows."""
    found = operator.get("/api/v1/operator/margin?group_by=tenant")
    for name in ("revenue", "cost"):
        rows = sum((Decimal(row[name]) for row in found["data"]), Decimal(0))
        expect(
            rows == Decimal(found["total"][name]), f"{name} of the rows is {rows}, the total is {found['total'][name]}"
        )
    expect(
        not operator.get("/api/v1/operator/discrepancies")["data"], "no hour should differ from the engine's journal"
    )
    per_hour, idle = found["cost_per_hour"], found["device"]["idle_cost"]
    table = Table(title=f"margin in {currency()} at {per_hour} per device-hour; idle {idle}")
    table.add_column("tenant")
    for name in COLUMNS:
        table.add_column(name.replace("_", " "), justify="right")
    for row in (*found["data"], {"label": "total"} | found["total"]):
        table.add_row(row["label"], *(_shown(row, name) for name in COLUMNS))
    console = Console(width=WIDTH)
    with console.capture() as captured:
        console.print(table)
    show(captured.get())


def _shown(row: JSON, name: str) -> str:
    value = row[name]
    if value is None:
        return ""
    return (
        f"{Decimal(value):.6f}"
        if name in ("prefill_seconds", "decode_seconds", "revenue", "cost", "margin")
        else f"{value}"
    )
