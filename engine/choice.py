"""One completion in the making: what its next token is drawn with, and whether a token ends it."""

from dataclasses import dataclass, field

from engine.decoding.constraint import Constraint
from engine.decoding.logprobs import Scored
from engine.decoding.sampler import Draw
from engine.decoding.shaping import Shape, shapes
from engine.decoding.text_stream import TextStream
from engine.protocol import FinishReason, Sampling
from engine.scheduling.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Rules:
    """What all choices of a request go by. ends: tokens that end the text. eos_ids: those of them that no
    stop_token_ids have to name. max_len: tokens, the prompt's among them. is_shaped: every row's logits are changed."""

    sampling: Sampling
    ends: frozenset[int]
    eos_ids: frozenset[int]
    max_len: int
    is_shaped: bool

    @staticmethod
    def of(sampling: Sampling, eos_ids: frozenset[int], max_len: int) -> "Rules":
        eos_ids = frozenset() if sampling.ignore_eos else eos_ids
        return Rules(sampling, eos_ids.union(sampling.stop_token_ids), eos_ids, max_len, shapes(sampling))

    def shape(self, sequence: Sequence, draft: tuple[int, ...] = (), constraint: Constraint | None = None) -> Shape:
        """Of the row that follows the sequence's tokens, and a draft after them."""
        tokens = [*sequence.tokens, *draft] if draft else sequence.tokens
        mask = None if constraint is None else constraint.mask()
        return Shape(self.sampling, tokens, sequence.prompt_len, tuple(self.ends), mask)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a token brought. reason: why the text ends with it, None where it goes on."""

    text: str
    reason: FinishReason | None = None
    stop_reason: str | int | None = None


@dataclass(slots=True, eq=False)
class Choice:
    """index: among the request's choices. seed: of its own random stream. spoke_at: when its last token came, by the
    engine's clock. text, scored: what is kept where all choices have to end before any is told."""

    index: int
    seed: int
    rules: Rules
    sequence: Sequence
    stream: TextStream
    constraint: Constraint | None = None
    spoke_at: float | None = None
    reason: FinishReason | None = None
    stop_reason: str | int | None = None
    text: list[str] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)

    def draw(self, draft: tuple[int, ...] = ()) -> Draw:
        """How the token after the sequence's own, and a draft after them, is chosen. Raises ConstraintRefused."""
        shape = None
        if self.constraint is not None or self.rules.is_shaped:
            shape = self.rules.shape(self.sequence, draft, self.constraint)
        return Draw(self.rules.sampling, self.seed, len(self.sequence.tokens) + len(draft), shape)

    def take(self, token: int) -> Taken:
        """Append the token and say what it brought."""
        sequence, rules = self.sequence, self.rules
        sequence.tokens.append(token)
        length = len(sequence.tokens)
        is_over = self.constraint is not None and self.constraint.accept(token)
        if token in rules.ends:
            return self._ended_by(token)
        text = self.stream.push(token, may_stop=length - sequence.prompt_len >= rules.sampling.min_tokens)
        if is_over or self.stream.stopped_by is not None:
            return self.end("stop", text)
        return self.end("length", text) if length >= rules.max_len else Taken(text)

    def hold_back(self, text: str, scored: tuple[Scored, ...]) -> None:
        """Keep what would be told, until all choices have ended."""
        self.text.append(text)
        self.scored += scored

    def end(self, reason: FinishReason, text: str = "") -> Taken:
        """The text ends here. A stop string may only now have become complete."""
        text += self.stream.finish()
        self.reason = "stop" if self.stream.is_stopped else reason
        self.stop_reason = self.stream.stopped_by
        return Taken(text, self.reason, self.stop_reason)

    def _ended_by(self, token: int) -> Taken:
        by_wish = token not in self.rules.eos_ids
        text = self.stream.push(token, may_stop=False) if by_wish and self.rules.sampling.include_stop else ""
        taken = self.end("stop", text)
        if by_wish and taken.stop_reason is None:
            self.stop_reason = token
        return Taken(taken.text, taken.reason, self.stop_reason)
