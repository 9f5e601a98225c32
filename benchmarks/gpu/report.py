"""Lines of results, and sections that fail alone."""

import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

import torch


@dataclass(frozen=True)
class Line:
    """value: in `unit`. bound: what the device allows, in the same unit, or 0. goal: least bound / value, or 0."""

    what: str
    value: float
    unit: str
    bound: float = 0.0
    limit: str = ""
    goal: float = 0.0

    @property
    def share(self) -> float:
        return self.bound / self.value if self.bound and self.value else 0.0

    def __str__(self) -> str:
        share = f"{self.share:.0%}" if self.bound else ""
        missed = " below goal" if self.goal and self.share < self.goal else ""
        goal = f"{self.goal:.0%}{missed}" if self.goal else ""
        return f"| {self.what} | {self.value:.4g} {self.unit} | {self.bound:.4g} | {self.limit} | {share} | {goal} |"


@dataclass
class Report:
    """deadline: of `time.monotonic`; sections and cases behind it are left out, and named. note: told at once of what a
    section begins, yields or fails with, should the process not live to its end."""

    deadline: float
    note: Callable[[dict[str, object]], None] = lambda record: None
    lines: list[Line] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    is_broken: bool = False

    def section(self, name: str, lines: Callable[[], Iterator[Line]]) -> None:
        """What fails ends its section, with its reason kept, and no other."""
        if time.monotonic() > self.deadline:
            self._leave_out(name)
            return
        self.note({"begun": name})
        print(f"\n{name}\n| what | measured | bound | limit | share | goal |\n|---|---|---|---|---|---|", flush=True)
        try:
            for line in lines():
                print(line, flush=True)
                self.lines.append(line)
                self.note({"lines": [_as_dict(line)]})
                if time.monotonic() > self.deadline:
                    self._leave_out(f"the rest of {name}")
                    return
        except Exception as error:  # whatever it is, the next section is worth measuring
            self.failures[name] = f"{type(error).__name__}: {error}"
            self.note({"failures": {name: self.failures[name]}})
            traceback.print_exc()
            print(f"{name} FAILED: {error}", flush=True)
        self.is_broken = not _is_usable()

    def _leave_out(self, name: str) -> None:
        self.left_out.append(name)
        self.note({"left_out": [name]})


def _as_dict(line: Line) -> dict[str, object]:
    return asdict(line) | {"share": line.share}


def _is_usable() -> bool:
    """Whether the device still answers: after an illegal access it never does again in this process."""
    if not torch.cuda.is_available():
        return True
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError:
        return False
    return True
