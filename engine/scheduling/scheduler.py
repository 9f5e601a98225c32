"""Which tokens the next step computes."""

import logging
from bisect import insort
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.cache.pages import PagePool
from engine.cache.prefix import PrefixCache
from engine.protocol import AdapterRef
from engine.scheduling.activation import fork_of
from engine.scheduling.fair_queue import FairQueue
from engine.scheduling.holdings import Holdings
from engine.scheduling.sequence import Batch, Run, Sequence

log = logging.getLogger(__name__)

# Plans that a tenant with nothing running may wait before another tenant's sequence is preempted for it.
YIELD_PLANS = 16
# Plans that may pass a sequence over, once its turn has come, before an adapter slot is drained for it.
PATIENCE = 32
# Service of one sampled token, in prompt tokens: a decode step reads all weights for one token per sequence.
DECODE_WEIGHT = 2


class Adapters(Protocol):
    """What the scheduler asks of `engine.adapters.pool.AdapterPool`."""

    def acquire(self, adapter: AdapterRef) -> int | None: ...
    def release(self, slot: int) -> None: ...
    def reserve(self, digests: list[str]) -> None: ...
    def invocation(self, slot: int) -> tuple[int, ...]: ...


@dataclass(slots=True)
class _Draft:
    """A batch while it is put together. unseated: digests of adapters that this plan found no slot for."""

    budget: int
    unseated: set[str] = field(default_factory=set)
    runs: dict[Sequence, Run] = field(default_factory=dict)

    def put(self, run: Run) -> None:
        self.runs[run.sequence] = run
        self.budget -= run.length

    def withdraw(self, sequence: Sequence) -> None:
        run = self.runs.pop(sequence, None)
        self.budget += run.length if run else 0


class Scheduler:
    """Owns waiting and running sequences, and what a running one holds: pages and a slot.

    Who yields when pages run out is the youngest of the tenant with most sequences running, never the oldest of all.
    So the oldest always gets on, and since every sequence is bounded, all do.

    The bound on waiting: a tenant with nothing running is admitted within YIELD_PLANS + n plans of its request, where n
    counts the tenants in the same position, itself included. It holds for a request of the base model or of an adapter
    in a slot, while n and the tenants running are no more than max_running places, and while its pages fit beside one
    sequence of each of those tenants and the oldest of all. Others may then have to yield to it.
    """

    def __init__(
        self,
        *,
        pool: PagePool,
        cache: PrefixCache,
        adapters: Adapters,
        page_size: int,
        step_tokens: int,
        max_running: int,
    ) -> None:
        self._pool, self._cache, self._adapters = pool, cache, adapters
        self._step_tokens, self._max_running = step_tokens, max_running
        self._holdings = Holdings(pool, cache, page_size, step_tokens)
        self._queue = FairQueue()
        self._running: list[Sequence] = []  # by arrival
        self._arrivals = 0
        self._plans = 0
        self._blocked = ""  # what held up admission last, so that it is logged once
        self.preemptions = 0

    @property
    def running(self) -> tuple[Sequence, ...]:
        return tuple(self._running)

    @property
    def pages(self) -> dict[str, int]:
        """Pages by state: free, cached (only the prefix cache holds them), used (a running sequence does)."""
        used = len({page for sequence in self._running for page in sequence.held_pages})
        return {"free": self._pool.available, "cached": self._pool.size - self._pool.available - used, "used": used}

    @property
    def waiting_count(self) -> int:
        return len(self._queue)

    @property
    def tenants_waiting(self) -> int:
        return self._queue.tenants

    @property
    def waiting_by_tenant(self) -> Counter[str]:
        return self._queue.waiting_by_tenant

    def waiting_of(self, tenant: str) -> int:
        """How many sequences of this tenant wait."""
        return self._queue.waiting_of(tenant)

    @property
    def waiting(self) -> tuple[Sequence, ...]:
        """In the order of their turn."""
        return tuple(self._queue.turns())

    def waiting_for(self, digest: str) -> list[Sequence]:
        """Sequences that wait for this adapter."""
        return [s for s in self._queue.turns() if s.adapter is not None and s.adapter.digest == digest]

    def add(self, sequence: Sequence) -> None:
        self._arrivals += 1
        sequence.arrival, sequence.queued_at = self._arrivals, self._plans
        self._queue.join(sequence)

    def plan(self) -> Batch:
        """The next step's work: decodes, tenants that have waited too long, chunks of running prompts, the rest."""
        self._plans += 1
        self._adapters.reserve(self._starved())
        draft = _Draft(self._step_tokens)
        for sequence in [*self._running]:
            if sequence.remaining_len == 1:
                self._continue(sequence, draft)
        self._admit_overdue(draft)
        for sequence in [*self._running]:
            if sequence.remaining_len > 1 and sequence not in draft.runs:
                self._continue(sequence, draft)
        self._admit(draft)
        return Batch(tuple(draft.runs.values()))

    def follow(self, runs: Several[Run], ended: int) -> Batch | None:
        """The step after these decodes, while their tokens are not known: one more token for each that its own does
        not end by length. ended: sequences that run only until they can be given back.

        None where `plan` might then do anything else: somebody computes a prompt, or waits and may find a place, or
        pages have to come from a running sequence.
        """
        going = [run for run in runs if run.start + run.length + 1 < run.sequence.max_len]
        if not going or len(runs) + ended < len(self._running) or (len(self._queue) and not self._is_full(going)):
            return None
        ends = [run.start + run.length + 1 for run in going]
        lacks = [self._holdings.lack(run.sequence, end) for run, end in zip(going, ends, strict=True)]
        if not self._holdings.has(sum(lacks)):
            return None
        self._plans += 1
        self._adapters.reserve(self._starved())
        for run, end in zip(going, ends, strict=True):
            self._holdings.give_back_behind(run.sequence)
            self._holdings.grow(run.sequence, end)
        return Batch(tuple(Run(run.sequence, run.start + run.length, 1, rows=1) for run in going))

    def remember(self, sequence: Sequence) -> None:
        """Offer the pages computed so far to the prefix cache; the sequence keeps them."""
        self._holdings.remember(sequence)

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """`child` begins with the tokens that `parent` has computed, and at least one more. It shares their whole
        pages and computes the rest of the last one again. Where there is a place it runs at once; else, or where
        `parent` runs no more, it waits at the head of its tenant's line."""
        child.arrival, child.queued_at, child.fork = parent.arrival, self._plans, parent.fork
        child.metered_cached_len = parent.metered_cached_len
        self._queue.join(child)
        if parent in self._running:
            self.remember(parent)
        if parent not in self._running or len(self._running) >= self._max_running or not self._reseat(child):
            self._queue.give_back(child)
            return
        self._queue.take(child)
        self._holdings.share(parent, child)
        insort(self._running, child, key=lambda other: other.arrival)

    def widen(self, batch: Batch, drafts: Mapping[Sequence, tuple[int, ...]]) -> Batch:
        """Let guessed tokens follow the runs of these sequences, as far as the step's budget goes, and pages that no
        running sequence has to give up for them."""
        budget = self._step_tokens - batch.tokens
        runs = list(batch.runs)
        for place, run in enumerate(runs):
            draft = drafts.get(run.sequence, ())[:budget]
            tokens = run.start + run.length + len(draft)
            if draft and self._holdings.has(self._holdings.lack(run.sequence, tokens)):
                self._holdings.grow(run.sequence, tokens)
                runs[place] = replace(run, length=run.length + len(draft), rows=run.rows + len(draft), draft=draft)
                budget -= len(draft)
        return Batch(tuple(runs))

    def narrow(self, sequence: Sequence) -> None:
        """Give back the pages that only guessed tokens needed."""
        self._holdings.narrow(sequence)

    def charge_sampled(self, sequence: Sequence) -> None:
        self._queue.charge(sequence, DECODE_WEIGHT)

    def end(self, sequence: Sequence, *, keep_pages: bool) -> None:
        """It is gone, waiting or running. keep_pages: what it computed is sound and goes into the prefix cache."""
        if sequence in self._running:
            self._running.remove(sequence)
            self._release(sequence, keep_pages=keep_pages)
        self._queue.leave(sequence)

    def check_integrity(self) -> None:
        """Every page reference is a running sequence's or the tree's; nobody who waits holds anything."""
        self._pool.check_integrity()
        self._cache.check_integrity()
        self._queue.check_integrity()
        held = sum(len(sequence.held_pages) for sequence in self._running) + len(self._cache)
        assert held == sum(self._pool.references(page) for page in range(self._pool.size))
        assert len(self._running) <= self._max_running
        assert [s.arrival for s in self._running] == sorted(s.arrival for s in self._running)
        for sequence in self._queue.turns():
            assert not sequence.pages
            assert sequence.slot is None

    def _continue(self, sequence: Sequence, draft: _Draft) -> None:
        length = min(sequence.remaining_len, draft.budget)
        # A sequence earlier in this plan may have preempted this one.
        if length <= 0 or sequence not in self._running:
            return
        self._holdings.give_back_behind(sequence)
        if self._grow(sequence, sequence.computed_len + length, draft):
            draft.put(_run(sequence, length))

    def _is_full(self, going: Several[Run]) -> bool:
        """These have all places, and no tenant waits that could have one made."""
        tenants = {run.sequence.tenant for run in going}
        return len(going) == self._max_running and next(self._queue.turns(besides=tenants), None) is None

    def _grow(self, sequence: Sequence, tokens: int, draft: _Draft) -> bool:
        """Pages for `tokens` tokens, preempting as needed. False: `sequence` itself had to yield."""
        while not self._holdings.has(self._holdings.lack(sequence, tokens)):
            victim = self._who_yields() or self._running[-1]
            self._preempt(victim, draft, "pages", sequence)
            if victim is sequence:
                return False
        self._holdings.grow(sequence, tokens)
        return True

    def _who_yields(self) -> Sequence | None:
        """The youngest of the tenant with most sequences running for its weight. Nobody gives up a tenant's only one,
        nor the oldest of all."""
        places = Counter(sequence.tenant for sequence in self._running)
        spare = [sequence for sequence in self._running[1:] if places[sequence.tenant] > 1]
        return max(spare, key=lambda s: (places[s.tenant] / s.weight, s.arrival), default=None)

    def _preempt(self, victim: Sequence, draft: _Draft, lack: str, favoured: Sequence) -> None:
        draft.withdraw(victim)
        self._explain("preempt", victim, lack=lack, favoured=favoured.request_id)
        self._running.remove(victim)
        self._release(victim, keep_pages=True)
        victim.queued_at = self._plans
        self._queue.give_back(victim)
        self.preemptions += 1

    def _admit_overdue(self, draft: _Draft) -> None:
        """One sequence of each tenant that has nothing running and has waited YIELD_PLANS; others make room for it."""
        running = {sequence.tenant for sequence in self._running}
        for sequence in self._queue.turns(besides=running):
            if draft.budget <= 0:
                return
            overdue = sequence.queued_at <= self._plans - YIELD_PLANS and sequence.tenant not in running
            if overdue and self._seat(sequence, draft):
                if self._make_room(sequence, draft):
                    running.add(sequence.tenant)
                    self._start(sequence, draft)
                else:
                    self._release(sequence, keep_pages=False)

    def _make_room(self, sequence: Sequence, draft: _Draft) -> bool:
        """A place and pages. False: there is nobody left who could yield."""
        while True:
            lack = "places" if len(self._running) >= self._max_running else "pages"
            if lack == "pages" and self._holdings.place(sequence, len(self._running)):
                return True
            victim = self._who_yields()
            if victim is None:
                return False
            self._preempt(victim, draft, lack, sequence)

    def _admit(self, draft: _Draft) -> None:
        for sequence in self._queue.turns():
            if draft.budget <= 0 or len(self._running) >= self._max_running:
                self._hold_up(sequence, "step_tokens" if draft.budget <= 0 else "places")
                return
            if not self._seat(sequence, draft):
                if sequence.passed_over_at is None:
                    sequence.passed_over_at = self._plans
                    self._explain("pass over", sequence, lack="adapter slot")
                continue
            # Some room is left for those who run, lest they preempt it at once.
            if not self._holdings.place(sequence, len(self._running)):
                self._release(sequence, keep_pages=False)
                self._hold_up(sequence, "pages")
                return
            self._start(sequence, draft)

    def _hold_up(self, sequence: Sequence, lack: str) -> None:
        """Nobody else is admitted in this plan."""
        if self._blocked != f"{sequence.request_id} {lack}":
            self._blocked = f"{sequence.request_id} {lack}"
            self._explain("hold up", sequence, lack=lack)

    def _explain(self, decision: str, sequence: Sequence, **why: object) -> None:
        """One debug line per decision: what the scheduler did with which sequence, and why."""
        if log.isEnabledFor(logging.DEBUG):
            state = {
                "request_id": sequence.request_id, "tenant": sequence.tenant, "plan": self._plans,
                "waited_plans": self._plans - sequence.queued_at, "running": len(self._running),
                "waiting": len(self._queue), "pages_free": self._pool.available,
            }  # fmt: skip
            log.debug(decision, extra={**state, **why})

    def _starved(self) -> list[str]:
        """Digests of sequences whose turn it was PATIENCE plans ago, and that are still passed over."""
        since = self._plans - PATIENCE
        starved = [s for s in self._queue.turns() if s.passed_over_at is not None and s.passed_over_at <= since]
        return list(dict.fromkeys(s.adapter.digest for s in starved if s.adapter is not None))

    def _seat(self, sequence: Sequence, draft: _Draft) -> bool:
        """An adapter slot where it needs one. False: not now; its load has been started."""
        if sequence.adapter is None:
            return True
        digest = sequence.adapter.digest
        if digest not in draft.unseated:
            sequence.slot = self._adapters.acquire(sequence.adapter)
            if sequence.slot is None:
                draft.unseated.add(digest)
            else:
                self._activate(sequence, sequence.slot)
        return sequence.slot is not None

    def _reseat(self, sequence: Sequence) -> bool:
        """One more use of a slot that another sequence holds. False: it is being drained for other adapters."""
        if sequence.adapter is not None:
            sequence.slot = self._adapters.acquire(sequence.adapter)
        return sequence.adapter is None or sequence.slot is not None

    def _activate(self, sequence: Sequence, slot: int) -> None:
        """Find where an activated adapter begins. Its files say what invokes it, so its slot is the first to know."""
        invocation = self._adapters.invocation(slot)
        if invocation and sequence.fork is None:
            sequence.fork = fork_of(sequence.tokens[: sequence.prompt_len], invocation, sequence.namespace)

    def _start(self, sequence: Sequence, draft: _Draft) -> None:
        """It has all it needs: from waiting to running, with its first tokens in this batch."""
        length = min(sequence.remaining_len, draft.budget)
        self._explain("admit", sequence, slot=sequence.slot, cached_len=sequence.cached_len, tokens=length)
        sequence.passed_over_at = None
        self._queue.take(sequence)
        if sequence.metered_cached_len is None:
            sequence.metered_cached_len = sequence.cached_len
            self._queue.charge(sequence, sequence.remaining_len)
        insort(self._running, sequence, key=lambda other: other.arrival)
        draft.put(_run(sequence, length))

    def _release(self, sequence: Sequence, *, keep_pages: bool) -> None:
        if keep_pages:
            self.remember(sequence)
        self._holdings.drop(sequence)
        if sequence.slot is not None:
            self._adapters.release(sequence.slot)
        sequence.slot = None


def _run(sequence: Sequence, length: int) -> Run:
    start = sequence.computed_len
    if sequence.rows_from is None:
        return Run(sequence, start, length, rows=int(start + length == len(sequence.tokens)))
    return Run(sequence, start, length, rows=min(max(start + length - sequence.first_row, 0), length))
