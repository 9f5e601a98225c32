"""A process of the stack that dies at a chosen point of its work: armed here, done by `inside/sitecustomize.py`."""

import time
from dataclasses import dataclass
from pathlib import Path

from controlplane.embedded.demo.stack import DemoStack

INSIDE = Path(__file__).parent / "inside"
PATIENCE = 120.0


@dataclass(frozen=True)
class Point:
    """`module:function`, and before or after its n-th call from the arming on."""

    function: str
    when: str = "before"
    call: int = 1


def settings_of(home: Path) -> dict[str, str]:
    """Environment of a stack whose processes can be made to die."""
    folder = home / "deaths"
    folder.mkdir(mode=0o755)
    return {"PYTHONPATH": str(INSIDE), "VENEER_TEST_DEATHS": str(folder)}


class Death:
    """Of one child, once it (or another) comes to the point."""

    def __init__(self, stack: DemoStack, child: str, point: Point) -> None:
        self._stack, self._child = stack, child
        self._killed = int(stack.facts()["pids"][child])
        self._file = stack.home / "deaths" / f"{point.function}:{point.when}:{point.call}"
        draft = self._file.with_suffix(".new")
        draft.write_text(str(self._killed))
        draft.rename(self._file)

    @property
    def is_due(self) -> bool:
        return self._file.exists()

    def wait(self) -> None:
        """Until it has come, and the child is back."""
        deadline = time.monotonic() + PATIENCE
        while self.is_due or self._pid() in (None, self._killed):
            assert time.monotonic() < deadline, f"{self._child}: {self._file.name} due: {self.is_due}"
            time.sleep(0.05)

    def _pid(self) -> int | None:
        return self._stack.facts()["pids"].get(self._child)
