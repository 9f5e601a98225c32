"""What commands print: lines for people, or the API's own JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

import click
import msgspec


@dataclass(frozen=True)
class Output:
    as_json: bool

    def show(self, answer: object, text: str) -> None:
        click.echo(msgspec.json.encode(answer) if self.as_json else text)

    def say(self, text: str) -> None:
        if not self.as_json:
            click.echo(text)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their longest cell; None is empty."""
    cells = [[*head], *[["" if cell is None else str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
