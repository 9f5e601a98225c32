"""Grammars, by llguidance: which tokens may come next so that the whole text matches."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from torch import Tensor

from engine.decoding.constraint import ConstraintRefused
from engine.decoding.grammar_source import is_too_long, refusal, source_of
from engine.protocol import Grammar

# Compiled grammars that are kept. One whose lexer is at its limit of states has about 25 MB; a usual one, some 100 kB.
KEPT_GRAMMARS = 64
# In place of a clock, so that a grammar is refused or served alike on any machine. On one core compiling then takes at
# most about 0.5 s and a token's mask about 20 ms; usual ones take 1 ms and 0.02 ms.
LIMITS = LLParserLimits(
    max_items_in_row=2_000,
    initial_lexer_fuel=300_000,
    step_lexer_fuel=100_000,
    step_max_items=8_000,
    max_lexer_states=65_536,
    max_grammar_size=20_000,
    verbose_errors=False,  # they would put a request's text into messages
)


class Grammars:
    """Compiles grammars for one vocabulary and keeps the latest. Safe to use from several threads.

    vocab_size: rows of the model's logits, which may be more than it has tokens: those are never allowed.
    """

    def __init__(self, tokenizer: LLTokenizer, vocab_size: int) -> None:
        self._tokenizer, self._vocab_size = tokenizer, vocab_size
        self._kept: OrderedDict[bytes, LLMatcher | ConstraintRefused] = OrderedDict()
        self._lock = threading.Lock()

    def is_ready(self, grammar: Grammar) -> bool:
        """Whether `constraint` will answer at once."""
        with self._lock:
            return is_too_long(grammar) or _digest(grammar) in self._kept

    def compile(self, grammar: Grammar) -> None:
        """Have it ready. Takes up to a second, most of it without the interpreter's lock. Raises ConstraintRefused."""
        self._compiled(grammar)

    def constraint(self, grammar: Grammar) -> "GrammarConstraint":
        """For one choice, at the start of its text. Raises ConstraintRefused."""
        matcher = self._compiled(grammar)
        return GrammarConstraint(matcher.deep_copy(), self._vocab_size, lambda: self._drop(grammar, matcher))

    def _compiled(self, grammar: Grammar) -> LLMatcher:
        if is_too_long(grammar):
            source_of(grammar)
        digest = _digest(grammar)
        with self._lock:
            found = self._kept.get(digest)
            if found is not None:
                self._kept.move_to_end(digest)
        if found is None:
            found = self._compile(grammar)
            self._keep(digest, found)
        if isinstance(found, ConstraintRefused):
            raise ConstraintRefused(str(found))
        return found

    def _compile(self, grammar: Grammar) -> LLMatcher | ConstraintRefused:
        try:
            matcher = LLMatcher(self._tokenizer, source_of(grammar), limits=LIMITS, log_level=0)
        except ConstraintRefused as fault:
            return fault
        if matcher.is_error():
            return refusal(grammar, matcher.get_error())
        # Some faults show only in the first mask, and what that costs is then paid here.
        probe = matcher.deep_copy()
        mask = probe.compute_bitmask()
        if probe.is_error():
            return refusal(grammar, probe.get_error())
        return matcher if any(mask) else refusal(grammar, "")

    def _keep(self, digest: bytes, compiled: LLMatcher | ConstraintRefused) -> None:
        """What is refused is kept too: it may have taken as long."""
        with self._lock:
            self._kept[digest] = compiled
            if len(self._kept) > KEPT_GRAMMARS:
                self._kept.popitem(last=False)

    def _drop(self, grammar: Grammar, matcher: LLMatcher) -> None:
        """The states of a grammar's lexer are shared by all its choices: after one failed, the next get a new one."""
        with self._lock:
            if self._kept.get(_digest(grammar)) is matcher:
                del self._kept[_digest(grammar)]


class GrammarConstraint:
    """A `Constraint`: one choice's place in its grammar. on_failure: called where it is too complex to go on with."""

    def __init__(self, matcher: LLMatcher, vocab_size: int, on_failure: Callable[[], None]) -> None:
        self._matcher, self._on_failure = matcher, on_failure
        self._words = (vocab_size + 31) // 32
        self._after_end = 0  # tokens accepted past the grammar's end, which the matcher does not count

    def mask(self) -> Tensor:
        bits = bytearray(self._matcher.compute_bitmask())
        if self._matcher.is_error():
            self._on_failure()
            raise ConstraintRefused(
                "the grammar is too complex to go on with at this place of the text, or asks for characters that this "
                "model's tokens cannot write: make it smaller, bound its repetitions, or leave them out"
            )
        return torch.frombuffer(bits, dtype=torch.int32)[: self._words]

    def accept(self, token: int) -> bool:
        """A token that the grammar does not take makes the next mask fail."""
        if self._is_over:
            self._after_end += 1
        else:
            self._matcher.consume_token(token)
        return self._is_over

    def rollback(self, tokens: int) -> None:
        past_end = min(tokens, self._after_end)
        self._after_end -= past_end
        if tokens > past_end:
            self._matcher.rollback(tokens - past_end)

    @property
    def _is_over(self) -> bool:
        return self._matcher.is_stopped() and not self._matcher.is_error()


def _digest(grammar: Grammar) -> bytes:
    return sha256(f"{grammar.kind}:{grammar.text}".encode()).digest()
