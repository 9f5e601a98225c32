"""A device for the toy model: its steps run one after the other, as on a stream, at any time up to when they are read.

`late` runs a step when somebody waits for it, which is as far behind the host as it can be, and the same every time;
`thread` runs it on a thread of its own, at once.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Literal, Protocol

from engine.cache.pages import PagePool
from engine.decoding.sampler import Draw, sample
from engine.models.rows import Rows
from engine.models.sampled import Before
from engine.scheduling.sequence import Batch, Run

Schedule = Literal["late", "thread"]
Tokens = list[int | None]


class Model(Protocol):
    def run(self, batch: Batch) -> Rows: ...


class ToyPending:
    def __init__(self, result: "Future[Tokens]", catch_up: Callable[["Future[Tokens]"], None]) -> None:
        self._result, self._catch_up = result, catch_up

    def tokens(self) -> Tokens:
        self._catch_up(self._result)
        return self._result.result()


class ToyDevice:
    """What a step computes is what the host said at its start: pages, slot and length as they were then. Whether those
    are still its own is asked when it runs: a page that was freed meanwhile, or a slot that another adapter has been
    written to, is a fault of the engine.

    pool: the engine's pages. begun: steps. ahead: how many of them before the one before them was read.
    """

    def __init__(self, model: Model, schedule: Schedule) -> None:
        self.model, self.pool = model, PagePool(0)
        self.begun = self.ahead = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toy-device") if schedule == "thread" else None
        self._late: deque[tuple[Future[Tokens], Callable[[], Tokens]]] = deque()

    def start(self, batch: Batch, draws: Sequence[Draw], before: Before | None) -> ToyPending:
        assert all(run.length == 1 and not run.draft for run in batch.runs), "only decodes overlap"
        self.begun += 1
        self.ahead += before is not None
        frozen, kept = [_frozen(run, known=before is None) for run in batch.runs], list(draws)

        def work() -> Tokens:
            return self._compute(frozen, kept, before)

        if self._thread is not None:
            return ToyPending(self._thread.submit(work), self._catch_up)
        self._late.append((Future(), work))
        return ToyPending(self._late[-1][0], self._catch_up)

    def _catch_up(self, result: "Future[Tokens]") -> None:
        while self._late and not result.done():
            one, work = self._late.popleft()
            try:
                one.set_result(work())
            except Exception as error:  # whoever reads the step is told
                one.set_exception(error)

    def _compute(self, runs: list[Run], draws: list[Draw], before: Before | None) -> Tokens:
        if before is not None:
            came = before.pending.tokens()
            for run, row in zip(runs, before.rows, strict=True):
                run.sequence.tokens.append(came[row] or 0)
        self._check_pages(runs)
        rows = self.model.run(Batch(tuple(runs)))
        self._check_pages(runs)
        return sample(rows.logits, draws)

    def _check_pages(self, runs: list[Run]) -> None:
        for run in runs:
            freed = [page for page in run.sequence.held_pages if not self.pool.references(page)]
            assert not freed, f"pages {freed} of {run.sequence.request_id} are free while a step uses them"


def _frozen(run: Run, *, known: bool) -> Run:
    """As a launch has it: nothing the host does later changes it."""
    sequence = run.sequence
    tokens = sequence.tokens[: run.start + known]
    return replace(run, sequence=replace(sequence, tokens=tokens, pages=list(sequence.pages)))
