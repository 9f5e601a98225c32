"""What one choice of a request got, as it comes and as a whole."""

from collections.abc import AsyncIterable
from dataclasses import dataclass, field, replace

from engine.protocol import TokenEvent, TokenLogprob

WELL = ("stop", "length")
PromptLogprobs = tuple[TokenLogprob | None, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """New text of one choice. Each choice ends with a piece that has a `finish_reason`.

    index: prompt * n + choice. logprobs: of `token_ids`, empty where not asked for. prompt_logprobs: with the first
    piece of a prompt's first choice, before any other of that prompt. stop_reason, embedding: as in `TokenEvent`.
    """

    index: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: PromptLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    embedding: bytes | None = None


def piece_of(event: TokenEvent, first_index: int) -> Piece:
    """first_index: the index of the first choice of the event's request in the whole answer."""
    return Piece(
        first_index + event.index,
        event.text,
        event.token_ids,
        event.logprobs or (),
        event.prompt_logprobs,
        event.finish_reason,
        event.stop_reason,
        event.embedding,
    )


def parted(piece: Piece) -> tuple[Piece, Piece | None]:
    """The text and the end of a piece, apart. A choice that was stopped from outside has no end to tell."""
    if piece.finish_reason is None:
        return piece, None
    body = replace(piece, finish_reason=None, stop_reason=None)
    if piece.finish_reason not in WELL:
        return body, None
    return body, Piece(piece.index, finish_reason=piece.finish_reason, stop_reason=piece.stop_reason)


def merged(pieces: list[Piece]) -> Piece:
    """Pieces of one choice, in order, as one. Only the last may have a finish_reason."""
    if len(pieces) == 1:
        return pieces[0]
    last = pieces[-1]
    return Piece(
        last.index,
        "".join(piece.text for piece in pieces),
        tuple(token for piece in pieces for token in piece.token_ids),
        tuple(logprob for piece in pieces for logprob in piece.logprobs),
        next((piece.prompt_logprobs for piece in pieces if piece.prompt_logprobs is not None), None),
        last.finish_reason,
        last.stop_reason,
        next((piece.embedding for piece in pieces if piece.embedding is not None), None),
    )


@dataclass
class Pending:
    """Pieces on their way to a reader, by choice: a slow one gets them merged."""

    _by_index: dict[int, list[Piece]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._by_index)

    def add(self, piece: Piece) -> None:
        self._by_index.setdefault(piece.index, []).append(piece)

    def take(self) -> Piece:
        """All there is of the choice that has waited longest."""
        return merged(self._by_index.pop(next(iter(self._by_index))))


async def whole_choices(pieces: AsyncIterable[Piece | None]) -> list[Piece]:
    """Each choice as one piece, by index."""
    parts: dict[int, list[Piece]] = {}
    async for piece in pieces:
        if piece is not None:
            parts.setdefault(piece.index, []).append(piece)
    return [merged(parts[index]) for index in sorted(parts)]
