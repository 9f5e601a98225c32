"""Which tokens the next step computes."""

from bisect import insort
from dataclasses import dataclass, field
from typing import Protocol

from engine.cache.pages import PagePool
from engine.cache.prefix import PrefixCache
from engine.protocol import AdapterRef
from engine.scheduling.fair_queue import FairQueue
from engine.scheduling.sequence import Batch, Run, Sequence

# Plans that may pass a sequence over, once its turn has come, before an adapter slot is drained for it.
PATIENCE = 32
# Service of one sampled token, in prompt tokens: a decode step reads all weights for one token per sequence.
DECODE_WEIGHT = 2


class Adapters(Protocol):
    """What the scheduler asks of `engine.adapters.pool.AdapterPool`."""

    def acquire(self, adapter: AdapterRef) -> int | None: ...
    def release(self, slot: int) -> None: ...
    def reserve(self, digests: list[str]) -> None: ...


@dataclass(slots=True)
class _Draft:
    """A batch while it is put together."""

    budget: int
    runs: dict[str, Run] = field(default_factory=dict)

    def put(self, run: Run) -> None:
        self.runs[run.sequence.request_id] = run
        self.budget -= run.length

    def withdraw(self, sequence: Sequence) -> None:
        run = self.runs.pop(sequence.request_id, None)
        self.budget += run.length if run else 0


class Scheduler:
    """Owns waiting and running sequences, and what a running one holds: pages, a lock in the prefix cache, a slot.

    Seniority (arrival) decides who yields when pages run out: the youngest. So the oldest always gets on, and since
    every sequence is bounded, all do.
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
        self._page_size, self._step_tokens, self._max_running = page_size, step_tokens, max_running
        self._queue = FairQueue()
        self._running: list[Sequence] = []  # by arrival
        self._arrivals = 0
        self._plans = 0

    @property
    def running(self) -> tuple[Sequence, ...]:
        return tuple(self._running)

    @property
    def waiting_count(self) -> int:
        return len(self._queue)

    @property
    def waiting(self) -> tuple[Sequence, ...]:
        """In the order of their turn."""
        return tuple(self._queue.turns())

    def waiting_for(self, digest: str) -> list[Sequence]:
        """Sequences that wait for this adapter."""
        return [s for s in self._queue.turns() if s.adapter is not None and s.adapter.digest == digest]

    def add(self, sequence: Sequence) -> None:
        self._arrivals += 1
        sequence.arrival = self._arrivals
        self._queue.join(sequence)

    def plan(self) -> Batch:
        """The next step's work: decodes first, then chunks of running prompts, then new sequences."""
        self._plans += 1
        draft = _Draft(self._step_tokens)
        for sequence in [*self._running]:
            if sequence.remaining_len == 1:
                self._continue(sequence, draft)
        for sequence in [*self._running]:
            if sequence.remaining_len > 1:
                self._continue(sequence, draft)
        self._admit(draft)
        return Batch(tuple(draft.runs.values()))

    def remember(self, sequence: Sequence) -> None:
        """Offer the pages computed so far to the prefix cache; the sequence keeps them locked."""
        node = self._cache.insert(sequence.namespace, sequence.tokens[: sequence.computed_len], sequence.pages)
        if node is not None:
            self._cache.lock(node)
        if sequence.node is not None:
            self._cache.unlock(sequence.node)
        sequence.node = node

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
        held = sum(len(sequence.pages) for sequence in self._running) + len(self._cache)
        assert held == sum(self._pool.references(page) for page in range(self._pool.size))
        assert len(self._running) <= self._max_running
        assert [s.arrival for s in self._running] == sorted(s.arrival for s in self._running)
        for sequence in self._queue.turns():
            assert not sequence.pages
            assert sequence.slot is None
            assert sequence.node is None

    def _continue(self, sequence: Sequence, draft: _Draft) -> None:
        length = min(sequence.remaining_len, draft.budget)
        # A sequence earlier in this plan may have preempted this one.
        if length <= 0 or sequence not in self._running:
            return
        if self._grow(sequence, sequence.computed_len + length, draft):
            draft.put(_run(sequence, length))

    def _grow(self, sequence: Sequence, tokens: int, draft: _Draft) -> bool:
        """Pages for `tokens` tokens, preempting the youngest as needed. False: the youngest was `sequence` itself."""
        needed = self._pages_of(tokens) - len(sequence.pages)
        while not self._has_pages(needed):
            victim = self._running[-1]
            draft.withdraw(victim)
            self._preempt(victim)
            if victim is sequence:
                return False
        sequence.pages += self._pool.allocate(max(needed, 0))
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self._running.remove(sequence)
        self._release(sequence, keep_pages=True)
        self._queue.give_back(sequence)

    def _admit(self, draft: _Draft) -> None:
        self._adapters.reserve(self._starved())
        for sequence in self._queue.turns():
            if draft.budget <= 0 or len(self._running) >= self._max_running:
                return
            if not self._seat(sequence):
                sequence.passed_over_at = sequence.passed_over_at or self._plans
                continue
            if not self._place(sequence):
                self._release(sequence, keep_pages=False)
                return
            sequence.passed_over_at = None
            self._start(sequence)
            draft.put(_run(sequence, min(sequence.remaining_len, draft.budget)))

    def _starved(self) -> list[str]:
        """Digests of sequences whose turn it was PATIENCE plans ago, and that are still passed over."""
        since = self._plans - PATIENCE
        starved = [s for s in self._queue.turns() if s.passed_over_at is not None and s.passed_over_at <= since]
        return list(dict.fromkeys(s.adapter.digest for s in starved if s.adapter is not None))

    def _seat(self, sequence: Sequence) -> bool:
        """An adapter slot where it needs one. False: not now; its load has been started."""
        if sequence.adapter is None:
            return True
        sequence.slot = self._adapters.acquire(sequence.adapter)
        return sequence.slot is not None

    def _place(self, sequence: Sequence) -> bool:
        """Pages for all tokens it has, the cached prefix first. The last token is always computed: it is what the
        next one is sampled from. Some room is left for those who run, lest they preempt it at once."""
        match = self._cache.match(sequence.namespace, sequence.tokens[:-1])
        if match.node is not None:
            self._cache.lock(match.node)
            sequence.node = match.node
        self._pool.share(match.pages)
        sequence.pages = list(match.pages)
        sequence.cached_len = sequence.computed_len = len(match.pages) * self._page_size
        needed = self._pages_of(len(sequence.tokens)) - len(match.pages)
        if not self._has_pages(needed + len(self._running)):
            return False
        sequence.pages += self._pool.allocate(needed)
        return True

    def _start(self, sequence: Sequence) -> None:
        self._queue.take(sequence)
        if sequence.metered_cached_len is None:
            sequence.metered_cached_len = sequence.cached_len
            self._queue.charge(sequence, sequence.remaining_len)
        insort(self._running, sequence, key=lambda other: other.arrival)

    def _release(self, sequence: Sequence, *, keep_pages: bool) -> None:
        if keep_pages:
            self.remember(sequence)
        if sequence.node is not None:
            self._cache.unlock(sequence.node)
        self._pool.free(sequence.pages)
        if sequence.slot is not None:
            self._adapters.release(sequence.slot)
        sequence.node, sequence.slot, sequence.pages = None, None, []
        sequence.cached_len = sequence.computed_len = 0

    def _has_pages(self, count: int) -> bool:
        if self._pool.available < count:
            self._cache.evict(count)
        return self._pool.available >= count

    def _pages_of(self, tokens: int) -> int:
        return -(-tokens // self._page_size)


def _run(sequence: Sequence, length: int) -> Run:
    return Run(sequence, sequence.computed_len, length, samples=length == sequence.remaining_len)
