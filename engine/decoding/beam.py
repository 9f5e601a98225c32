"""Beam search over rows of logits, as transformers has it: length penalty, and an end where nothing can get better."""

import math
from collections.abc import Sequence as Several
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.decoding.logprobs import Scored, score_one_row
from engine.decoding.shaping import Shape


@dataclass(frozen=True, slots=True)
class Candidate:
    """One token that may follow a beam. total: sum of the log-probabilities up to it, as they were shaped."""

    scored: Scored
    total: float


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A completion. scored: its tokens."""

    scored: tuple[Scored, ...] = ()
    total: float = 0.0

    def followed_by(self, candidate: Candidate) -> "Hypothesis":
        return Hypothesis((*self.scored, candidate.scored), candidate.total)


@dataclass(frozen=True, slots=True)
class Branch:
    """parent: index of the beam that goes on. is_end: the text ends with the candidate's token."""

    parent: int
    candidate: Candidate
    is_end: bool


@dataclass(slots=True)
class BeamSearch:
    """beams: hypotheses that go on. ended: the best that do not, at most `width`, with their scores, best first."""

    width: int
    length_penalty: float
    beams: list[Hypothesis] = field(default_factory=lambda: [Hypothesis()])
    ended: list[tuple[float, Hypothesis]] = field(default_factory=list)

    def candidates_of(self, beam: int, row: Tensor, shape: Shape | None, *, ends: int, top: int = 0) -> list[Candidate]:
        """The likeliest tokens after a beam. row: its logits, float32 [vocab]. ends: how many tokens are ends; so many
        more candidates leave enough that go on. top: of the likeliest, how many each token is told with."""
        shaped = row
        if shape is not None:
            shaped = row.clone()
            shape.apply(shaped)
        wanted = min(self.pool_size(ends), len(row))
        values, ids = torch.log_softmax(shaped, dim=-1, dtype=torch.float32).topk(wanted)
        kept = values.isfinite()
        tokens, gains = ids[kept].tolist(), values[kept].tolist()
        scored = score_one_row(row, tokens, top)
        total = self.beams[beam].total
        return [Candidate(each, total + gain) for each, gain in zip(scored, gains, strict=True)]

    def pool_size(self, ends: int) -> int:
        """Candidates that are looked at in one round."""
        return max(2, 1 + ends) * self.width

    def pool(self, candidates: Several[Several[Candidate]], ends: int) -> list[tuple[int, Candidate]]:
        """(beam, candidate): the best of all beams' candidates, best first."""
        every = [(beam, each) for beam, ours in enumerate(candidates) for each in ours]
        return sorted(every, key=lambda pair: -pair[1].total)[: self.pool_size(ends)]

    def advance(self, branches: Several[Branch]) -> list[Branch]:
        """branches: one per member of the pool. Returns those that go on, which `beams` now are; none where nothing
        that goes on can be better than what has ended."""
        for branch in branches[: self.width]:
            if branch.is_end:
                self._end(self.beams[branch.parent].followed_by(branch.candidate))
        going_on = [branch for branch in branches if not branch.is_end][: self.width]
        self.beams = [self.beams[branch.parent].followed_by(branch.candidate) for branch in going_on]
        return going_on if self._may_improve() else []

    def best(self, count: int) -> list[Hypothesis]:
        """The best that ended; those that have not stand in where there are too few."""
        open_ones = sorted(((self._score(beam), beam) for beam in self.beams), key=lambda pair: -pair[0])
        return [beam for _, beam in [*self.ended, *open_ones][:count]]

    def _may_improve(self) -> bool:
        if not self.beams or len(self.ended) < self.width:
            return bool(self.beams)
        return self._score(self.beams[0]) > self.ended[-1][0]

    def _end(self, hypothesis: Hypothesis) -> None:
        self.ended.append((self._score(hypothesis), hypothesis))
        self.ended.sort(key=lambda pair: -pair[0])
        del self.ended[self.width :]

    def _score(self, hypothesis: Hypothesis) -> float:
        length = float(max(len(hypothesis.scored), 1))
        return hypothesis.total / math.pow(length, self.length_penalty)
