"""What is read from the answers of one round, and what many rounds say together."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from benchmarks.comparison.work import Answer, Job

_MS = 1e3


@dataclass(frozen=True)
class Figures:
    """rate: output tokens per second, from the first question to the last token. ttft: median, of those requests that
    arrive behind others where there are such. itl_p50, itl_p99: of all gaps between pieces. In ms, None where there are
    none."""

    rate: float
    ttft: float
    itl_p50: float | None
    itl_p99: float | None


def figures_of(job: Job, answers: Sequence[Answer]) -> Figures:
    late = [answer for ask, answer in zip(job.asks, answers, strict=True) if ask.after is not None]
    gaps = sorted(later - earlier for answer in answers for earlier, later in pairwise(answer.times))
    took = max(answer.times[-1] for answer in answers) - min(answer.asked for answer in answers)
    return Figures(
        rate=sum(answer.tokens for answer in answers) / took,
        ttft=_MS * median(answer.times[0] - answer.asked for answer in late or answers),
        itl_p50=_MS * median(gaps) if gaps else None,
        itl_p99=_MS * gaps[int(0.99 * (len(gaps) - 1))] if gaps else None,
    )


@dataclass(frozen=True)
class Row:
    """One server at one workload. note: why there are no figures. bound: tokens per second that nothing could exceed.

    lead: how many times as fast Veneer was in the same rounds. peak: bytes.
    """

    workload: str
    peer: str
    rounds: tuple[Figures, ...] = ()
    bound: float | None = None
    lead: float | None = None
    peak: int = 0
    note: str = ""

    @property
    def rate(self) -> float | None:
        return self.middle("rate")

    def middle(self, name: str) -> float | None:
        """The median over the rounds."""
        found = [value for each in self.rounds if (value := getattr(each, name)) is not None]
        return median(found) if found else None

    def as_json(self) -> dict[str, Any]:
        rates = [each.rate for each in self.rounds]
        middles = {name: self.middle(name) for name in ("rate", "ttft", "itl_p50", "itl_p99")}
        return {**asdict(self), **middles, "slowest": min(rates, default=None), "fastest": max(rates, default=None)}


HEAD = (
    "| work | server | tokens/s | slowest to fastest | rounds | Veneer is | share of bound | TTFT ms | ITL p50 ms "
    "| p99 ms | memory MB |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(row: Row) -> str:
    if not row.rounds:
        return f"| {row.workload} | {row.peer} | {row.note} | | | | | | | | |"
    rates = [each.rate for each in row.rounds]
    lead = "" if row.lead is None else f"{row.lead:.2f}x"
    share = "" if row.bound is None or row.rate is None else f"{100 * row.rate / row.bound:.0f} %"
    spread = f"{min(rates):.1f} to {max(rates):.1f}"
    times = " | ".join("" if (v := row.middle(n)) is None else f"{v:.1f}" for n in ("ttft", "itl_p50", "itl_p99"))
    peer = f"{row.peer} ({row.note})" if row.note else row.peer
    cells = (row.workload, peer, f"{row.rate:.1f}", spread, str(len(rates)), lead, share, times, _mb(row.peak))
    return f"| {' | '.join(cells)} |"


def _mb(count: int) -> str:
    return f"{count / 1e6:,.0f}"
