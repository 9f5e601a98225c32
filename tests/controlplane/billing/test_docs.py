"""docs/billing.md: the invoice that it works out is the one that the code issues, to the last digit."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controlplane.billing.alert_mail import SUBJECTS
from controlplane.billing.costing import cost_of, money_text
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind, Invoice, Price
from controlplane.billing.profiles import ProfileChanges, change_profile
from controlplane.billing.statements import close_period
from controlplane.billing.terms import Terms, Tier
from controlplane.billing.webhook_api import KINDS
from tests.controlplane.billing.test_agreements import agreed
from tests.controlplane.billing.test_invoices import assert_books_hold, use
from tests.controlplane.money import Customer, D, customer_named, everything

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "billing.md").read_text()
MAY, JUNE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
COLUMNS = ("label", "requests", "prompt_tokens", "cached_tokens", "completion_tokens", "exact", "amount")


def table(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its head."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.fixture
def acme(db: None) -> Customer:
    found = customer_named("acme")
    found.tenant.created_at = MAY
    found.tenant.save()
    return found


def test_the_worked_invoice(acme: Customer) -> None:
    price = Price.objects.create(
        base_model="SmolLM2-135M-Instruct", tenant=acme.tenant, created_by="test",
        input=D("0.5"), cached_input=D("0.05"), output=D("1.5"), adapter_surcharge=D("0.2"),
    )  # fmt: skip
    agreed(acme, Terms(D("5.00"), 1_000_000, "graduated", (Tier(D(10), D(10)),)))
    change_profile(tenant=acme.tenant, changes=ProfileChanges(tax_name="VAT", tax_rate=D(19)), actor="usr")
    grant_credit(tenant=acme.tenant, amount=D(5), kind=GrantKind.PROMO, actor="usr")
    on = {"base_model": price.base_model, "price_id": price.id, "adapter_version_id": None}
    bot = on | {"adapter_id": "adp_1", "model": "support-bot@3"}
    base = on | {"adapter_id": None, "model": price.base_model}
    use(acme, 12_345_678, MAY, cached_tokens=4_000_000, completion_tokens=6_543_210, **bot)
    use(acme, 3_210_987, MAY, completion_tokens=1_111_111, **base)
    close_period(tenant=acme.tenant, until=JUNE, actor="usr")
    invoice = everything(Invoice).get()
    lines = [[str(line[name]) for name in COLUMNS] for line in invoice.lines]
    sums = [["Subtotal", invoice.subtotal], ["VAT 19 %", invoice.tax], ["Total", invoice.total]]
    expected = lines + [[name, "", "", "", "", "", f"{amount:f}"] for name, amount in sums]
    shown = [[cell.replace(",", "") if n else cell for n, cell in enumerate(row)] for row in table("A worked invoice")]
    assert [[cell if cell != "0" else "" for cell in row] for row in expected] == shown
    assert f"carries {money_text(invoice.carried_out)} on" in " ".join(PAGE.split())
    assert_books_hold()


def test_the_worked_cost() -> None:
    seconds, per_hour, cost = re.search(r"(\d+) device-seconds at \$([\d.]+) an hour cost \$([\d.]+\d)", PAGE).groups()
    assert cost_of(int(seconds) * 10**9, D(per_hour)) == D(cost)


def test_every_kind_of_alert_is_listed() -> None:
    listed = {row[0].strip("`") for row in table("Alerts and webhooks")}
    assert listed == {*KINDS, *(kind.value for kind in SUBJECTS)}
