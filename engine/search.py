"""One request's beam search: which sequence each beam has, and what becomes of it after every round."""

from dataclasses import dataclass

from torch import Tensor

from engine.choice import Rules
from engine.decoding.beam import BeamSearch, Branch, Candidate, Hypothesis
from engine.decoding.text_stream import TextStream
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Sequence


@dataclass(slots=True, eq=False)
class Member:
    """One beam. candidates: what may follow it, None before its row was read. stream: of its text, to see stop strings.
    is_held: the scheduler has its sequence."""

    sequence: Sequence
    stream: TextStream
    candidates: list[Candidate] | None = None
    is_held: bool = True


class Search:
    """A round is over when every beam's row was read. Until then a beam whose row was read holds nothing: so no two
    searches wait for pages that the other holds."""

    def __init__(self, rules: Rules, lead: Sequence, stream: TextStream) -> None:
        self._rules = rules
        self._beams = BeamSearch(rules.sampling.beam_width, rules.sampling.length_penalty)
        self._members = [Member(lead, stream)]

    @property
    def sequences(self) -> list[Sequence]:
        """Those that the scheduler has."""
        return [member.sequence for member in self._members if member.is_held]

    @property
    def width(self) -> int:
        """Beams of this round."""
        return len(self._members)

    def read(self, sequence: Sequence, row: Tensor) -> bool:
        """Take in the logits that follow a beam. row: float32 [vocab]. False: they are not finite."""
        if not bool(row.amax().isfinite()):
            return False
        beam = next(index for index, member in enumerate(self._members) if member.sequence is sequence)
        shape = self._rules.shape(sequence) if self._rules.is_shaped else None
        top, ends = self._rules.sampling.logprobs or 0, len(self._rules.ends)
        self._members[beam].candidates = self._beams.candidates_of(beam, row, shape, ends=ends, top=top)
        return True

    def advance(self, scheduler: Scheduler) -> bool:
        """After a step that read rows. True: the search is over."""
        candidates = [member.candidates for member in self._members if member.candidates is not None]
        if len(candidates) < len(self._members):
            self._step_aside(scheduler)
            return False
        pool = self._beams.pool(candidates, len(self._rules.ends))
        branches = [Branch(beam, each, self._is_end(self._members[beam], each.scored.token)) for beam, each in pool]
        going_on = self._beams.advance(branches)
        if going_on:
            self._follow(going_on, scheduler)
        return not going_on

    def best(self, count: int) -> list[Hypothesis]:
        return self._beams.best(count)

    def _is_end(self, member: Member, token: int) -> bool:
        sampling, length = self._rules.sampling, len(member.sequence.tokens) + 1
        if token in self._rules.ends or length >= self._rules.max_len:
            return True
        return bool(sampling.stop) and self._read_on(member, token).is_stopped

    def _read_on(self, member: Member, token: int) -> TextStream:
        stream = member.stream.copy()
        may_stop = member.sequence.completion_len + 1 >= self._rules.sampling.min_tokens
        stream.push(token, may_stop=may_stop)
        return stream

    def _step_aside(self, scheduler: Scheduler) -> None:
        for member in self._members:
            if member.is_held and member.candidates is not None:
                scheduler.end(member.sequence, keep_pages=True)
                member.is_held = False

    def _follow(self, going_on: list[Branch], scheduler: Scheduler) -> None:
        """One branch of a beam goes on in its sequence, the others fork from it; a beam without one ends first, so that
        its place is theirs."""
        parents, before = {branch.parent for branch in going_on}, self._members
        for beam, member in enumerate(before):
            if member.is_held and beam not in parents:
                scheduler.end(member.sequence, keep_pages=False)
        self._members, heirs = [], dict[int, int]()
        for branch in going_on:
            parent, token = before[branch.parent], branch.candidate.scored.token
            stream = self._read_on(parent, token) if self._rules.sampling.stop else parent.stream
            if parent.is_held and branch.parent not in heirs:
                heirs[branch.parent] = token
                self._members.append(Member(parent.sequence, stream))
            else:
                child = parent.sequence.heir(token)
                scheduler.fork(parent.sequence, child)
                self._members.append(Member(child, stream))
        for beam, token in heirs.items():
            before[beam].sequence.tokens.append(token)
