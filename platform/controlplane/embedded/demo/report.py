"""The table at the end: what each group of requests used, took and cost, and the line that says it all."""

from dataclasses import dataclass
from decimal import Decimal

from rich.console import Console
from rich.table import Table

from controlplane.currency import currency
from controlplane.embedded.client import JSON, Client
from controlplane.embedded.demo.people import PRICE, Member
from controlplane.embedded.demo.steps import expect
from controlplane.embedded.terminal import show

NUMBERS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
WIDTH = 118


@dataclass(frozen=True)
class Group:
    """One row of the usage API."""

    tenant: str
    row: JSON

    def count(self, name: str) -> int:
        return int(self.row[name])

    def decimal(self, name: str) -> Decimal:
        return Decimal(self.row[name])


def usage_groups(member: Member, session: Client) -> list[Group]:
    """By adapter; the total of the API must be the sum of its rows."""
    answer = session.get("/api/v1/usage?group_by=adapter")
    groups = [Group(member.slug, row) for row in answer["data"]]
    total = Group(member.slug, answer["total"])
    for name in NUMBERS:
        found = sum(group.count(name) for group in groups)
        expect(
            found == total.count(name),
            f"{member.slug}: {name} of the rows is {found}, the total says {total.count(name)}",
        )
    amount = sum((group.decimal("amount") for group in groups), Decimal(0))
    expect(
        amount == total.decimal("amount"), f"{member.slug}: rows come to {amount}, the total to {total.row['amount']}"
    )
    return groups


def show_table(groups: list[Group]) -> None:
    prices = ", ".join(f"{name.replace('_', ' ')} {price}" for name, price in PRICE.items())
    table = Table(title=f"price per 1M tokens in {currency()}: {prices}")
    table.add_column("tenant, model")
    for name in ("requests", "prompt", "cached", "completion", "device-s", "price", "cost"):
        table.add_column(name, justify="right")
    for group in groups:
        counts = [f"{group.count(name):,}" for name in NUMBERS]
        seconds = f"{group.decimal('device_seconds'):.3f}"
        money = [f"{group.decimal(name):.9f}" for name in ("amount", "cost")]
        table.add_row(f"{group.tenant}, {group.row['label']}", *counts, seconds, *money)
    console = Console(width=WIDTH)
    with console.capture() as captured:
        console.print(table)
    show(captured.get())


def last_line(members: list[Member], adapters: int, groups: list[Group]) -> str:
    requests = sum(group.count("requests") for group in groups)
    tokens = sum(group.count("prompt_tokens") + group.count("completion_tokens") for group in groups)
    billed = sum((group.decimal("amount") for group in groups), Decimal(0)).normalize()
    return (
        f"demo: ok tenants={len(members)} adapters={adapters} requests={requests} tokens={tokens} "
        f"billed={billed:f} books=balanced"
    )
