"""What a request becomes inside the engine."""

import secrets
from collections.abc import Callable
from typing import Protocol

from engine.cache.prefix import cache_namespace
from engine.choice import Choice, Rules
from engine.decoding.beam import Hypothesis
from engine.decoding.constraint import Constraint, ConstraintRefused
from engine.decoding.sampler import stream_seed
from engine.decoding.text_stream import TextStream
from engine.protocol import Generate, Grammar
from engine.request import Request
from engine.scheduling.admission import Limits, turn_of
from engine.scheduling.sequence import Sequence
from engine.search import Search


class Texts(Protocol):
    """What the engine asks of `engine.decoding.tokenizer.Tokenizer`."""

    @property
    def eos_ids(self) -> frozenset[int]: ...

    def stream(self, stop: tuple[str, ...] = (), *, include_stop: bool = False) -> TextStream: ...

    def piece(self, token: int) -> bytes: ...


class Intake:
    """constraints: what holds a choice to its grammar, raising ConstraintRefused; None: there are no grammars."""

    def __init__(self, limits: Limits, texts: Texts, constraints: Callable[[Grammar], Constraint] | None) -> None:
        self._limits, self._texts, self._constraints = limits, texts, constraints

    def request(self, asked: Generate, now: float) -> Request:
        """Of what admission has let in. Raises ConstraintRefused."""
        sampling, lead = asked.sampling, self._sequence(asked)
        rules = Rules.of(sampling, self._texts.eos_ids, lead.max_len)
        seed = sampling.seed if sampling.seed is not None else secrets.randbits(63)
        deadline = None if asked.deadline_s is None else now + asked.deadline_s
        if sampling.beam_width:
            search = Search(rules, lead, self._stream(asked))
            return Request(asked, lead, now, deadline, [], search)
        choices = [
            Choice(
                index=index,
                seed=stream_seed(seed, index),
                rules=rules,
                sequence=lead.heir() if index else lead,
                stream=self._stream(asked),
                constraint=self._constraint(sampling.grammar),
            )
            for index in range(max(sampling.n, sampling.best_of))
        ]
        return Request(asked, lead, now, deadline, choices, running={lead: choices[0]})

    def choices_of(self, request: Request, search: Search) -> list[Choice]:
        """The best hypotheses of a search, as choices; where they are too few, empty ones follow."""
        count = request.sampling.n
        best = search.best(count)
        best += [Hypothesis()] * (count - len(best))
        return [self._choice_of(request, index, hypothesis) for index, hypothesis in enumerate(best)]

    def _choice_of(self, request: Request, index: int, hypothesis: Hypothesis) -> Choice:
        """As if its tokens had come one by one."""
        rules = Rules.of(request.sampling, self._texts.eos_ids, request.lead.max_len)
        prompt = request.lead.tokens[: request.lead.prompt_len]
        sequence, stream = request.lead.heir(), self._stream(request.asked)
        sequence.tokens = prompt
        choice = Choice(index=index, seed=0, rules=rules, sequence=sequence, stream=stream)
        for scored in hypothesis.scored:
            choice.hold_back(choice.take(scored.token).text, (scored,))
        return choice

    def _stream(self, asked: Generate) -> TextStream:
        return self._texts.stream(asked.sampling.stop, include_stop=asked.sampling.include_stop)

    def _constraint(self, grammar: Grammar | None) -> Constraint | None:
        if grammar is None:
            return None
        if self._constraints is None:
            raise ConstraintRefused("this engine holds no text to a grammar: leave it out")
        return self._constraints(grammar)

    def _sequence(self, asked: Generate) -> Sequence:
        adapter, is_long = asked.adapter, self._limits.is_long(asked)
        reads_all = asked.pooling == "mean" or asked.sampling.prompt_logprobs is not None
        return Sequence(
            request_id=asked.request_id,
            tenant=turn_of(asked),
            namespace=cache_namespace(asked.namespace, adapter.digest if adapter else None, is_long=is_long),
            base_namespace=cache_namespace(asked.namespace, None, is_long=is_long),
            adapter=adapter,
            sampling=asked.sampling,
            tokens=list(asked.token_ids),
            prompt_len=len(asked.token_ids),
            max_len=self._limits.max_len(asked),
            weight=asked.tenant_weight,
            rows_from=0 if reads_all else None,
            pools=asked.pooling is not None,
        )
