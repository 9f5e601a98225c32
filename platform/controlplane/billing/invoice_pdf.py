"""An invoice as a PDF: the stored document set in type, so that the same invoice is the same file, byte for byte."""

from datetime import datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

from django.conf import settings
from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from controlplane.billing.costing import money_text
from controlplane.billing.invoices import number_text
from controlplane.billing.models import Invoice
from controlplane.currency import currency

_PLAIN, _BOLD = "Helvetica", "Helvetica-Bold"
_WIDTHS: Final = [62 * mm, 18 * mm, 24 * mm, 22 * mm, 24 * mm, 28 * mm]
_HEADS: Final = ("", "Requests", "Input tokens", "of it cached", "Output tokens")
_LATE: Final = " (ended in an earlier period, booked after its close)"


def invoice_pdf(invoice: Invoice) -> bytes:
    """A4. Letters that no configured font has are set as question marks; the JSON has them."""
    plain, bold = _fonts()
    styles = _styles(plain, bold)
    title = f"Invoice {number_text('invoice', invoice.number)}"
    pieces = [
        Paragraph(title, styles["title"]),
        Spacer(1, 4 * mm),
        _parties(invoice, styles),
        Spacer(1, 6 * mm),
        _dates(invoice, styles),
        Spacer(1, 6 * mm),
        _lines(invoice, styles),
    ]
    buffer = BytesIO()
    # invariant: no clock and no random id goes into the file.
    SimpleDocTemplate(
        buffer, pagesize=A4, title=title, author=_latin(invoice.seller["name"]), invariant=1,
        leftMargin=16 * mm, rightMargin=16 * mm, topMargin=20 * mm, bottomMargin=20 * mm,
    ).build(pieces)  # fmt: skip
    return buffer.getvalue()


def _fonts() -> tuple[str, str]:
    if not settings.INVOICE_FONT:
        return _PLAIN, _BOLD
    pdfmetrics.registerFont(TTFont(Path(settings.INVOICE_FONT).stem, settings.INVOICE_FONT))
    return (Path(settings.INVOICE_FONT).stem,) * 2


def _styles(plain: str, bold: str) -> dict[str, ParagraphStyle]:
    text = ParagraphStyle("text", fontName=plain, fontSize=9, leading=12)
    return {
        "text": text,
        "bold": ParagraphStyle("bold", text, fontName=bold),
        "number": ParagraphStyle("number", text, alignment=TA_RIGHT),
        "total": ParagraphStyle("total", text, fontName=bold, alignment=TA_RIGHT),
        "title": ParagraphStyle("title", text, fontName=bold, fontSize=18, leading=22),
    }


def _latin(text: str) -> str:
    return text if settings.INVOICE_FONT else text.encode("latin-1", "replace").decode("latin-1")


def _text(text: str, style: ParagraphStyle) -> Paragraph:
    """Escaped: names and addresses are the tenant's, and a paragraph reads markup."""
    return Paragraph("<br/>".join(escape(line) for line in _latin(text).splitlines()), style)


def _parties(invoice: Invoice, styles: dict[str, ParagraphStyle]) -> Table:
    columns = [
        [_text(head, styles["bold"]), *(_text(text, styles["text"]) for text in _party(party))]
        for head, party in (("From", invoice.seller), ("To", invoice.buyer))
    ]
    return Table([columns], colWidths=[89 * mm, 89 * mm], style=TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP")]))


def _party(party: dict[str, str]) -> list[str]:
    tax_id = [f"Tax id: {party['tax_id']}"] if party["tax_id"] else []
    return [text for text in (party["name"], party["address"]) if text] + tax_id


def _dates(invoice: Invoice, styles: dict[str, ParagraphStyle]) -> Table:
    zone = ZoneInfo(invoice.time_zone)
    start, end = (_minute(at, zone) for at in (invoice.statement.period_start, invoice.statement.period_end))
    facts = [
        ("Issued", f"{invoice.created_at.astimezone(zone):%Y-%m-%d}"),
        ("Due", f"{invoice.due_on:%Y-%m-%d}"),
        ("Usage from", f"{start}, up to but without {end} ({invoice.time_zone})"),
        ("Statement", invoice.statement_id),
    ]
    rows = [[_text(name, styles["bold"]), _text(value, styles["text"])] for name, value in facts]
    return Table(rows, colWidths=[30 * mm, 148 * mm], style=TableStyle([("TOPPADDING", (0, 0), (-1, -1), 0)]))


def _minute(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"


def _lines(invoice: Invoice, styles: dict[str, ParagraphStyle]) -> Table:
    head = [_text(name, styles["bold" if not name else "total"]) for name in (*_HEADS, currency())]
    rows = [head, *(_line(line, styles) for line in invoice.lines)]
    tax = f"{invoice.tax_name} {money_text(invoice.tax_rate)} %"
    sums = (("Subtotal", invoice.subtotal), (tax, invoice.tax), (f"Total in {currency()}", invoice.total))
    for name, amount in sums:
        rows.append([_text(name, styles["bold"]), "", "", "", "", _text(f"{amount:,.2f}", styles["total"])])
    line = (0.5, colors.grey)
    look = TableStyle([("LINEBELOW", (0, 0), (-1, 0), *line), ("LINEABOVE", (0, -3), (-1, -3), *line)])
    return Table(rows, colWidths=_WIDTHS, style=look, repeatRows=1)


def _line(line: dict[str, Any], styles: dict[str, ParagraphStyle]) -> list[Any]:
    label = line["label"] + (_LATE if line["kind"] == "late" else "")
    names = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
    counts = [_text(f"{line[name]:,}" if line[name] else "", styles["number"]) for name in names]
    return [_text(label, styles["text"]), *counts, _text(f"{Decimal(line['amount']):,.2f}", styles["number"])]
