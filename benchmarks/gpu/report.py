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
    """deadline: of `time.monotonic`; sections and cases behind it are left out, and named."""

    deadline: float
    lines: list[Line] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def section(self, name: str, lines: Callable[[], Iterator[Line]]) -> None:
        """What fails ends its section, with its reason kept, and no other."""
        if time.monotonic() > self.deadline:
            self.left_out.append(name)
            return
        print(f"\n{name}\n| what | measured | bound | limit | share | goal |\n|---|---|---|---|---|---|", flush=True)
        try:
            for line in lines():
                print(line, flush=True)
                self.lines.append(line)
                if time.monotonic() > self.deadline:
                    self.left_out.append(f"the rest of {name}")
                    return
        except Exception as error:  # whatever it is, the next section is worth measuring
            self.failures[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
            print(f"{name} FAILED: {error}", flush=True)
        finally:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def as_dict(self) -> dict[str, object]:
        lines = [asdict(line) | {"share": line.share} for line in self.lines]
        return {"lines": lines, "failures": self.failures, "left_out": self.left_out}
