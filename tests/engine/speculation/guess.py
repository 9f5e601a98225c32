"""A proposer that knows what comes, and errs where it is told to."""

import random
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from math import inf

from engine.protocol import EngineError, Event, Generate, TokenEvent, TokenLogprob
from engine.scheduling.sequence import Sequence
from engine.speculation.account import Account
from engine.speculation.controller import Option
from engine.speculation.costs import StepCosts
from engine.speculation.proposer import MAX_DRAFT, Ask, Outlook, Tokens
from engine.speculation.speculator import Speculator
from tests.engine.toy import VOCAB, Toy

Told = dict[tuple[str, int], "Answer"]


@dataclass
class Answer:
    """One choice of a request, as its events told it."""

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    end: tuple[str | None, str | int | None] = (None, None)


@dataclass
class Guess:
    """told: what each choice says in the end. errs: how often a token is guessed wrong."""

    told: Mapping[tuple[str, int], Answer]
    errs: float
    chance: random.Random
    guessed: int = 0
    kept: set[Sequence] = field(default_factory=set)

    def outlook(self, sequence: Sequence) -> Outlook:
        return Outlook(MAX_DRAFT)

    def propose(self, asks: Several[Ask]) -> list[Tokens]:
        self.kept |= {ask.sequence for ask in asks}
        return [self._guess(ask) for ask in asks]

    def forget(self, sequence: Sequence) -> None:
        self.kept.discard(sequence)

    def choose(self, options: Several[Option], sequences: int, costs: StepCosts) -> list[int]:
        return [self.chance.randint(0, option.longest) for option in options]

    def speculator(self) -> Speculator:
        return Speculator(self, choose=self.choose, account=Account(inf))

    def _guess(self, ask: Ask) -> Tokens:
        said = ask.sequence.tokens[ask.sequence.prompt_len :]
        answers = [a.tokens for (name, _), a in self.told.items() if name == ask.sequence.request_id]
        rest = next((tokens[len(said) :] for tokens in answers if tokens[: len(said)] == said), [])
        # Beyond the end of an answer it guesses on.
        rest += [self.chance.randrange(VOCAB) for _ in range(ask.length)]
        tokens = [self.chance.randrange(VOCAB) if self.chance.random() < self.errs else token for token in rest]
        self.guessed += ask.length
        return tuple(tokens[: ask.length])


def answered(
    toy: Toy, requests: list[Generate], aborts: Mapping[int, str] | None = None, *, is_checked: bool = True
) -> Told:
    """Ask everything at once and hear all answers. aborts: which request to end, by step. is_checked: every step."""
    told: Told = defaultdict(Answer)
    for request in requests:
        error = toy.engine.add(request)
        assert error is None, error
    for step in range(5000):
        if toy.engine.is_idle:
            return told
        if aborts and step in aborts:
            toy.engine.abort(aborts[step])
        for event in toy.engine.step():
            _hear(told, event)
        if is_checked:
            toy.engine.check_integrity()
    raise AssertionError("not idle after 5000 steps")


def _hear(told: Told, event: Event) -> None:
    if isinstance(event, EngineError):
        told[event.ref, 0].end = (event.code, event.message)
        return
    assert isinstance(event, TokenEvent)
    answer = told[event.request_id, event.index]
    assert answer.end == (None, None), "it said something after its end"
    answer.tokens += event.token_ids
    answer.text += event.text
    answer.logprobs += event.logprobs or ()
    answer.end = (event.finish_reason, event.stop_reason)
