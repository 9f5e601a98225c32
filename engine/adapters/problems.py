"""`Problem`, one reason why an adapter cannot be served, and `AdapterRefused`, all of them."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

_SHOWN_CHARS = 160


@dataclass(frozen=True, slots=True)
class Problem:
    """code: machine-readable. where: a file, config key or tensor. The rest is for the person who uploaded it."""

    code: str
    where: str
    found: str
    expected: str
    remedy: str

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}. {self.remedy}"


class AdapterRefused(Exception):
    """Every reason found, never none."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        assert self.problems
        super().__init__("\n".join(str(problem) for problem in self.problems))


def shown(value: object) -> str:
    """A stranger's value, made fit for a message: printable and bounded."""
    text = value if isinstance(value, str) and value and value.isprintable() else repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


def counted(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return shown(names[0]) + more
