"""A model's text, taken apart while it comes: what it thought, what it says, which tools it calls.

Nothing that the model wrote is lost: what opens like a call and is none, or calls what is not on offer, is said.
Blanks and line breaks next to a call or a thought are layout.
"""

from dataclasses import dataclass

from controlplane.inference.growing_text import GrowingText, Steps, before_space, shown_until, skip_space, starts_with
from controlplane.inference.tool_formats import Format, Offer, ToolCall


@dataclass(frozen=True)
class Said:
    text: str


@dataclass(frozen=True)
class Thought:
    text: str


Part = Said | Thought | ToolCall


@dataclass(frozen=True)
class Reading:
    """What to look for. marks: what a thought opens and closes with; is_thinking: the prompt has opened it."""

    format: Format | None = None
    offer: Offer | None = None
    marks: tuple[str, str] | None = None
    is_thinking: bool = False


class AnswerText:
    """`feed` what came, `finish` at its end: the same parts, in the same order, however the text was cut."""

    def __init__(self, reading: Reading) -> None:
        self._text = GrowingText()
        self._reader = _answer(self._text, reading)

    def feed(self, text: str) -> list[Part]:
        self._text.value += text
        return self._read()

    def finish(self) -> list[Part]:
        self._text.is_whole = True
        return self._read()

    def _read(self) -> list[Part]:
        parts: list[Part] = []
        for part in self._reader:
            if part is None:
                break
            parts.append(part)
        return parts


def _answer(text: GrowingText, reading: Reading) -> Steps[Part, None]:
    at = 0
    if reading.marks:
        at = yield from _thought(text, reading.marks, is_open=reading.is_thinking)
    if reading.format and reading.offer:
        at = yield from _calls(text, at, reading.format, reading.offer)
    while True:
        if not text.is_end(at):
            yield Said(text.value[at:])
            at = len(text.value)
        elif text.is_whole:
            return
        else:
            yield None


def _thought(text: GrowingText, marks: tuple[str, str], *, is_open: bool) -> Steps[Part, int]:
    """Where the thought ends; 0: there is none."""
    opener, closer = marks
    start = yield from skip_space(text, 0)
    if (yield from starts_with(text, start, opener)):
        start += len(opener)
    elif not is_open:
        return 0
    at = yield from skip_space(text, start)
    while True:
        end, is_closed = shown_until(text, closer, at)
        shown = before_space(text, at, end)
        if shown > at:
            yield Thought(text.value[at:shown])
            at = shown
        if is_closed:
            return (yield from skip_space(text, end + len(closer)))
        if text.is_whole:
            return end
        yield None


def _calls(text: GrowingText, at: int, fmt: Format, offer: Offer) -> Steps[Part, int]:
    """Up to the end of the last call that may be made, or of the text."""
    end: int | None
    if fmt.is_bare:
        start = yield from skip_space(text, at)
        end = yield from fmt.read(text, start, offer)
        at = at if end is None else (yield from skip_space(text, end))
        if end is not None and not offer.is_parallel:
            return at
    while (opener := (yield from _opener(text, at, fmt.opener))) is not None:
        at = before_space(text, at, opener)
        inside = opener + len(fmt.opener)
        end = yield from fmt.read(text, inside, offer)
        if end is None:
            yield Said(text.value[at:inside])
            at = inside
            continue
        at = yield from skip_space(text, end)
        if not offer.is_parallel:
            return at
    return len(text.value)


def _opener(text: GrowingText, at: int, mark: str) -> Steps[Part, int | None]:
    """Where the next call opens, or None at the end of the text; what stands before it is said."""
    while True:
        end, is_there = shown_until(text, mark, at)
        is_over = text.is_whole and not is_there
        shown = end if is_over else before_space(text, at, end)
        if shown > at:
            yield Said(text.value[at:shown])
            at = shown
        if is_there or is_over:
            return end if is_there else None
        yield None
