"""The speculator: what it learns from steps, and that what pays is drafted and what does not is not."""

from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace

from engine.protocol import Sampling
from engine.scheduling.sequence import Batch, Run, Sequence
from engine.speculation.lookup import Lookup
from engine.speculation.proposer import Ask, Outlook, Tokens
from engine.speculation.speculator import Speculator


@dataclass
class Fixed:
    """Proposes the same tokens, known beforehand or not."""

    tokens: Tokens = (1,) * 8
    is_known: bool = False
    asked: list[int] = field(default_factory=list)

    def outlook(self, sequence: Sequence) -> Outlook:
        return Outlook(len(self.tokens), known=self.tokens if self.is_known else ())

    def propose(self, asks: Several[Ask]) -> list[Tokens]:
        self.asked += [ask.length for ask in asks]
        return [self.tokens[: ask.length] for ask in asks]

    def forget(self, sequence: Sequence) -> None: ...


def sequence_of(tokens: list[int], max_len: int = 10_000) -> Sequence:
    return Sequence("r", "t", b"", None, Sampling(max_tokens=9), tokens, 1, max_len=max_len)


def steps(speculator: Speculator, sequence: Sequence, truth: list[int], plain: float, row: float) -> tuple[int, float]:
    """Decode `truth` with steps of plain + row * drafted seconds. Returns steps and seconds."""
    count, seconds, end = 0, 0.0, len(sequence.tokens) + len(truth)
    sequence.tokens += truth
    text = [*sequence.tokens]
    del sequence.tokens[end - len(truth) :]
    while len(sequence.tokens) < end:
        run = Run(sequence, len(sequence.tokens) - 1, 1, 1)
        draft = speculator.drafts(Batch((run,)), lambda sequence: 0).get(sequence, ())
        run = replace(run, length=1 + len(draft), rows=1 + len(draft), draft=draft)
        known = len(sequence.tokens)
        came = list[int | None]()
        for guess in (*draft, None):
            came.append(text[known + len(came)] if known + len(came) < end else 99)
            if guess != came[-1]:
                break
        speculator.learn(Batch((run,)), {sequence: came}, plain + row * len(draft), lambda *counts: None)
        sequence.tokens += text[known : known + len(came)]
        count, seconds = count + 1, seconds + plain + row * len(draft)
    return count, seconds


def test_what_repeats_takes_few_steps() -> None:
    count, seconds = steps(Speculator(Lookup()), sequence_of([*range(10, 60)] * 2), [*range(10, 60)] * 4, 1.0, 0.05)
    assert seconds < 200 / 3
    assert count < 60


def test_what_never_comes_is_soon_not_drafted_any_more() -> None:
    for is_known in (True, False):
        proposer = Fixed(is_known=is_known)
        _, seconds = steps(Speculator(proposer), sequence_of([5, 6]), [7] * 400, 1.0, 0.15)
        assert seconds < 400 / 0.98
        assert sum(proposer.asked) < 40


def test_a_draft_never_reaches_past_the_end_of_the_sequence() -> None:
    speculator = Speculator(Fixed(tokens=(7,) * 16))
    steps(speculator, sequence_of([5, 6]), [7] * 100, 1.0, 0.01)
    for room in (0, 1, 3):
        sequence = sequence_of([5, 6], max_len=3 + room)
        run = Run(sequence, 1, 1, 1)
        assert len(speculator.drafts(Batch((run,)), lambda sequence: 0).get(sequence, ())) == room


def test_a_step_with_a_prompt_in_it_says_nothing_of_costs() -> None:
    speculator, sequence = Speculator(Fixed()), sequence_of([5, 6])
    runs = (Run(sequence, 1, 1, 1), Run(sequence_of([1] * 50), 0, 50, 1))
    for _ in range(20):
        assert speculator.drafts(Batch(runs), lambda sequence: 0) == {}
        speculator.learn(Batch(runs), {run.sequence: [1] for run in runs}, 1.0, lambda *counts: None)


def test_nothing_is_kept_of_a_sequence_that_ended() -> None:
    speculator, sequence = Speculator(Lookup()), sequence_of([1, 2, 3, 1, 2])
    steps(speculator, sequence, [3, 1, 2, 3, 5, 5, 1, 2, 3], 1.0, 0.1)
    speculator.forget(sequence)
    speculator.forget(sequence)
    assert not speculator._watched
    assert not speculator._acceptance._own
