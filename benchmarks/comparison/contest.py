"""Servers take turns at the same work, A B C A B C, until the time of the workload is used up."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from benchmarks.comparison.bound import Bound, least
from benchmarks.comparison.figures import Figures, Row, figures_of
from benchmarks.comparison.peer import Peer, PeerFailed
from benchmarks.comparison.processes import wait_until_quiet
from benchmarks.comparison.work import Answer, Job, Words, Workload, check_job, job_of

ROUNDS = 5
JOB_SECONDS = 240.0
GRACE_SECONDS = 120.0  # for what has begun when the time is up
CHECK_TOKENS = 6


class Judge(Protocol):
    def faults(self, job: Job, answers: list[Answer]) -> str | None: ...


@dataclass
class Contest:
    """judge: None = nobody can say what is right. peers: the first is the one that the others are compared with.

    deadline: on time.monotonic(). ended: why a peer is asked nothing more. checked: what is wrong with its answers, by
    peer and number of adapters.
    """

    peers: Sequence[Peer]
    words: Words
    bound: Bound
    judge: Judge | None
    deadline: float
    say: Callable[[str], None]
    rounds: int = ROUNDS
    ended: dict[str, str] = field(default_factory=dict)
    checked: dict[tuple[str, int], str | None] = field(default_factory=dict)

    def run(self, workloads: Sequence[Workload]) -> Iterator[Row]:
        for place, workload in enumerate(workloads):
            left = self.deadline - time.monotonic()
            yield from self.workload(workload, left / (len(workloads) - place)) if left > 0 else self._late(workload)

    def workload(self, workload: Workload, allowance: float) -> list[Row]:
        """allowance: seconds after which no further round begins; each server has one in any case."""
        notes, ready = dict[str, str](), list[Peer]()
        for peer in self.peers:
            if note := self._make_ready(peer, workload):
                notes[peer.name] = note
            else:
                ready.append(peer)
        found = self._rounds(workload, ready, time.monotonic() + allowance)
        least_rate = least(workload, job_of(workload, self.words, 0), self.bound)
        return [self._row(workload, peer, found, notes, least_rate) for peer in self.peers]

    def _make_ready(self, peer: Peer, workload: Workload) -> str | None:
        """Start it, and check its answers where these adapters are new to it. Returns why it is not timed, or None."""
        if note := self.ended.get(peer.name) or peer.cannot(workload):
            return note
        known = peer.name, workload.adapters
        try:
            self.say(f"  {workload.name}: {peer.name} is prepared")
            peer.prepare(workload)
            if known not in self.checked:
                self.checked[known] = self._check(peer, workload)
        except PeerFailed as error:
            return self._end(peer, error)
        return self.checked[known]

    def _check(self, peer: Peer, workload: Workload) -> str | None:
        """Also warms it. Where the judge itself breaks, answers go unchecked from then on, and the rows say so."""
        job = check_job(workload, self.words, CHECK_TOKENS)
        answers = peer.run(job, self._seconds, with_ids=True)
        try:
            return self.judge.faults(job, answers) if self.judge else None
        except PeerFailed as error:
            self.say(f"  answers are not checked any more: {error}")
            self.judge = None
            return None

    def _rounds(self, workload: Workload, peers: Sequence[Peer], end: float) -> dict[str, list[Figures]]:
        found: dict[str, list[Figures]] = {peer.name: [] for peer in peers}
        took = dict.fromkeys(found, 0.0)
        for number in range(min(self.rounds, workload.rounds)):
            job = job_of(workload, self.words, number)
            for peer in peers:
                begun = time.monotonic()
                if peer.name in self.ended or (number and begun + took[peer.name] > end):
                    continue
                try:
                    found[peer.name].append(self._timed(peer, job))
                except PeerFailed as error:
                    self._end(peer, error)
                took[peer.name] = time.monotonic() - begun
        return found

    def _timed(self, peer: Peer, job: Job) -> Figures:
        wait_until_quiet()
        answers = peer.run(job, self._seconds)
        short = [ask.answer - answer.tokens for ask, answer in zip(job.asks, answers, strict=True)]
        if any(short):
            raise PeerFailed(f"answers were not as long as asked for, by {max(short, key=abs)} tokens")
        return figures_of(job, answers)

    @property
    def _seconds(self) -> float:
        return min(JOB_SECONDS, max(self.deadline + GRACE_SECONDS - time.monotonic(), 10.0))

    def _end(self, peer: Peer, error: PeerFailed) -> str:
        peer.stop()
        self.ended[peer.name] = f"stopped: {error}".replace("|", "/").replace("\n", " ")
        self.say(f"  {peer.name} {self.ended[peer.name]}")
        return self.ended[peer.name]

    def _row(
        self, workload: Workload, peer: Peer, found: dict[str, list[Figures]], notes: dict[str, str], bound: float
    ) -> Row:
        rounds, ours = found.get(peer.name, []), found.get(self.peers[0].name, [])
        leads = [a.rate / b.rate for a, b in zip(ours, rounds, strict=False)] if peer is not self.peers[0] else []
        return Row(
            workload.name, peer.name, tuple(rounds), bound, median(leads) if leads else None,
            peer.peak_bytes() if rounds else 0,
            notes.get(peer.name) or self.ended.get(peer.name) or ("" if self.judge else "not checked"),
        )  # fmt: skip

    def _late(self, workload: Workload) -> list[Row]:
        return [Row(workload.name, peer.name, note="left out: no time was left") for peer in self.peers]
