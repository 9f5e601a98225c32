"""What the project wants of these figures, and whether this run reached it."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparison.figures import Row


@dataclass(frozen=True)
class Goal:
    """Veneer is at least `times` as fast as `peer` (None = as the best of them) at this workload."""

    workload: str
    peer: str | None
    times: float


GOALS = (
    Goal("32 adapters x32", "vLLM", 12),
    Goal("32 adapters x32", "transformers + PEFT", 5),
    Goal("base x32", None, 1.5),
    Goal("base x1", "llama.cpp", 1.05),
)
# Of the bound, by workload.
SHARES = {"base x1": 0.75, "base x32": 0.55}


def goal_lines(rows: Sequence[Row]) -> list[str]:
    """A table of the goals whose workloads were run."""
    lines = [line for goal in GOALS if (line := _lead_line(goal, rows))]
    lines += [line for work, share in SHARES.items() if (line := _share_line(work, share, rows))]
    return ["| goal | wanted | reached |", "|---|---|---|", *lines] if lines else []


def _lead_line(goal: Goal, rows: Sequence[Row]) -> str | None:
    leads = [
        row.lead for row in rows
        if row.workload == goal.workload and row.lead is not None and goal.peer in (None, row.peer)
    ]  # fmt: skip
    if not leads:
        return None
    against = goal.peer or "the best peer"
    return f"| {goal.workload} against {against} | {goal.times}x | {min(leads):.2f}x |"


def _share_line(work: str, share: float, rows: Sequence[Row]) -> str | None:
    """The first row of a workload is Veneer's."""
    ours = next((row for row in rows if row.workload == work and row.rate and row.bound), None)
    if ours is None or ours.rate is None or ours.bound is None:
        return None
    reached = 100 * ours.rate / ours.bound
    return f"| share of the bound, {work}, prompts included | {100 * share:.0f} % | {reached:.0f} % |"
