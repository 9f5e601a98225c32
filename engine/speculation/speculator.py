"""Speculation of one engine: whom to draft for, what came of it, what it cost."""

import time
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace

from engine.scheduling.sequence import Batch, Run, Sequence
from engine.speculation.acceptance import Acceptance
from engine.speculation.account import Account
from engine.speculation.controller import Option, choose_lengths
from engine.speculation.costs import StepCosts
from engine.speculation.proposer import NOTHING, Ask, Outlook, Proposer, Tokens
from engine.speculation.verify import leading


@dataclass(slots=True)
class _Watch:
    """Tokens that were foreseen and not drafted. from_len: the sequence's length before the first of them."""

    from_len: int
    kind: int
    foreseen: Tokens


@dataclass(slots=True)
class _Step:
    """One step while it runs. kinds: of what was, or would have been, drafted. seconds: of drafting."""

    kinds: dict[Sequence, int] = field(default_factory=dict)
    seconds: float = 0.0


# Digest of the adapter, None = base model; drafted tokens that came, and those that did not.
Verified = Callable[[str | None, int, int], None]
Choose = Callable[[Several[Option], int, StepCosts], list[int]]


class Speculator:
    """Belongs to the step thread. One step at a time: `drafts`, then `learn` where the step did not fail.

    proposer: None drafts nothing. choose: lengths of drafts. account: what they may lose. clock: seconds.
    """

    def __init__(
        self,
        proposer: Proposer | None,
        *,
        choose: Choose = choose_lengths,
        account: Account | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._proposer, self._choose, self._clock = proposer, choose, clock
        self._acceptance, self._costs, self._account = Acceptance(), StepCosts(), account or Account()
        self._watched: dict[Sequence, _Watch] = {}
        self._step = _Step()

    @property
    def is_on(self) -> bool:
        return self._proposer is not None

    def drafts(self, batch: Batch, seed_of: Callable[[Sequence], int]) -> dict[Sequence, Tokens]:
        """Drafted tokens of those sequences that decode in this batch and may gain by them."""
        self._step = _Step()
        if self._proposer is None or not self._account.allows_drafts:
            return {}
        begun = self._clock()
        drafts = self._draft(self._proposer, [run.sequence for run in batch.runs if is_decode(run)], seed_of)
        self._step.seconds = self._clock() - begun
        return drafts

    def learn(
        self, batch: Batch, came: Mapping[Sequence, Several[int | None]], seconds: float, verified: Verified
    ) -> None:
        """came: the tokens of each sequence that sampled. seconds: of the whole step, drafting included. verified: told
        of each draft."""
        for run in [run for run in batch.runs if run.sequence in came]:
            if run.sequence in self._watched:
                self._compare(run, came[run.sequence])
            if run.draft:
                self._take_in(run, came[run.sequence], verified)
        if all(is_decode(run) for run in batch.runs):
            tokens = sum(len(came.get(run.sequence, ())) for run in batch.runs)
            self._price(len(batch.runs), tokens, [run for run in batch.runs if run.draft], seconds)

    def forget(self, sequence: Sequence) -> None:
        """It ended; one that was never drafted for is nobody's business."""
        if self._proposer is not None:
            self._proposer.forget(sequence)
        self._acceptance.forget(sequence)
        self._watched.pop(sequence, None)

    def _draft(
        self, proposer: Proposer, decoding: Several[Sequence], seed_of: Callable[[Sequence], int]
    ) -> dict[Sequence, Tokens]:
        outlooks = {sequence: self._outlook(proposer, sequence) for sequence in decoding}
        hopeful = [sequence for sequence, outlook in outlooks.items() if outlook.longest]
        lengths = self._lengths(hopeful, outlooks, len(decoding))
        asks = [Ask(sequence, seed_of(sequence), n) for sequence, n in zip(hopeful, lengths, strict=True) if n]
        proposed = proposer.propose(asks) if asks else []
        drafts = {ask.sequence: tokens for ask, tokens in zip(asks, proposed, strict=True) if tokens}
        self._step.kinds = {sequence: outlooks[sequence].kind for sequence in drafts}
        for sequence, outlook in outlooks.items():
            if sequence in drafts:
                self._watched.pop(sequence, None)
            else:
                self._pass_over(sequence, outlook)
        return drafts

    def _outlook(self, proposer: Proposer, sequence: Sequence) -> Outlook:
        """The step itself brings one token, so drafts beyond the room less one could never be taken. Beams part at
        every token, so nothing is drafted for them."""
        if sequence.sampling.beam_width or not sequence.completion_len:
            return NOTHING
        outlook, room = proposer.outlook(sequence), max(sequence.max_len - len(sequence.tokens) - 1, 0)
        return outlook if outlook.longest <= room else replace(outlook, longest=room)

    def _lengths(self, hopeful: Several[Sequence], outlooks: Mapping[Sequence, Outlook], decoding: int) -> list[int]:
        options = [
            Option(self._acceptance.rate(sequence, outlooks[sequence].kind), outlooks[sequence].longest)
            for sequence in hopeful
        ]
        return self._choose(options, decoding, self._costs)

    def _pass_over(self, sequence: Sequence, outlook: Outlook) -> None:
        """Nothing is drafted for it in this step; what was foreseen for nothing is watched instead."""
        if not outlook.known:
            self._acceptance.fade(sequence, outlook.kind)
        elif sequence not in self._watched:
            self._watched[sequence] = _Watch(len(sequence.tokens), outlook.kind, outlook.known)

    def _compare(self, run: Run, came: Several[int | None]) -> None:
        """Hold what was foreseen against what came, as a verification would have."""
        sequence = run.sequence
        watch = self._watched[sequence]
        known_len = run.start + run.length - len(run.draft)
        foreseen = watch.foreseen[known_len - watch.from_len :]
        self._saw(sequence, watch.kind, foreseen, came)
        if leading(foreseen, came) < len(came) or len(foreseen) <= len(came):
            del self._watched[sequence]

    def _take_in(self, run: Run, came: Several[int | None], verified: Verified) -> None:
        adapter, accepted = run.sequence.adapter, leading(run.draft, came)
        self._saw(run.sequence, self._step.kinds[run.sequence], run.draft, came)
        verified(adapter.digest if adapter else None, accepted, len(run.draft) - accepted)

    def _saw(self, sequence: Sequence, kind: int, foreseen: Several[int], came: Several[int | None]) -> None:
        accepted = leading(foreseen, came)
        self._acceptance.saw(sequence, kind, accepted, int(accepted < min(len(foreseen), len(came))))

    def _price(self, sequences: int, tokens: int, drafted: Several[Run], seconds: float) -> None:
        """tokens: that the step brought."""
        drafting = self._step.seconds
        if not drafted:
            self._costs.saw_plain(sequences, seconds - drafting)
            self._account.saw(-drafting, seconds, seconds)
            return
        rows, depth = sum(len(run.draft) for run in drafted), max(len(run.draft) for run in drafted)
        self._costs.saw_drafts(sequences, rows, seconds - drafting)
        self._costs.saw_drafting(sequences, depth, drafting)
        plain = self._costs.plain(sequences)
        if plain is not None:
            self._account.saw(plain * tokens / sequences - seconds, seconds, plain)


def is_decode(run: Run) -> bool:
    """It computes its sequence's last token, and drafts that may follow."""
    return run.samples and run.length == 1 + len(run.draft)
