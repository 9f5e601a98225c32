"""Reading a text that is still being written.

A reader is a generator. It yields None where it must see more of the text before it can go on, and goes on where it
stood once there is more: so what it reads cannot depend on where the text happened to be cut.
"""

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

_BETWEEN = re.compile(r"[\s0-9truefalsn,:.eE+-]*")  # all that JSON has outside its strings, but for brackets
_IN_STRING = re.compile(r'[^"\\\n]*(?:\\.[^"\\\n]*)*')
_SPACE = re.compile(r"\s*")
P = TypeVar("P")
T = TypeVar("T")
Steps = Generator[P | None, None, T]


@dataclass
class GrowingText:
    """is_whole: nothing will follow."""

    value: str = ""
    is_whole: bool = False

    def is_end(self, at: int) -> bool:
        return at >= len(self.value)


def skip_space(text: GrowingText, at: int) -> Steps[P, int]:
    """Where the next word begins, or where the text ends."""
    while True:
        at = _end_of(_SPACE, text, at)
        if not text.is_end(at) or text.is_whole:
            return at
        yield None


def starts_with(text: GrowingText, at: int, mark: str) -> Steps[P, bool]:
    while not text.is_whole and len(text.value) - at < len(mark) and mark.startswith(text.value[at:]):
        yield None
    return text.value.startswith(mark, at)


def json_end(text: GrowingText, at: int) -> Steps[P, int | None]:
    """Where the JSON object or array that begins at `at` ends; None: what stands there cannot be one. Brackets and
    strings are matched, no more: whether it is JSON is for a JSON parser to say."""
    depth = 0
    while True:
        at = _end_of(_BETWEEN, text, at)
        if text.is_end(at):
            if text.is_whole:
                return None
            yield None
            continue
        mark = text.value[at]
        at += 1
        if mark == '"':
            end = yield from _string_end(text, at)
            if end is None:
                return None
            at = end
        elif mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        else:
            return None
        if depth <= 0:
            return at if mark in "}]" and depth == 0 else None


def _string_end(text: GrowingText, at: int) -> Steps[P, int | None]:
    while True:
        at = _end_of(_IN_STRING, text, at)
        left = text.value[at : at + 2]
        if left.startswith('"'):
            return at + 1
        if left not in ("", "\\") or text.is_whole:
            return None
        yield None


def shown_until(text: GrowingText, mark: str, at: int) -> tuple[int, bool]:
    """Up to where the text is surely not a part of `mark`, and whether `mark` begins there."""
    found = text.value.find(mark, at)
    if found >= 0:
        return found, True
    longest = 0 if text.is_whole else min(len(mark) - 1, len(text.value) - at)
    half = next((size for size in range(longest, 0, -1) if text.value.endswith(mark[:size])), 0)
    return len(text.value) - half, False


def before_space(text: GrowingText, at: int, end: int) -> int:
    """The end of the last word in [at, end)."""
    return at + len(text.value[at:end].rstrip())


def _end_of(pattern: re.Pattern[str], text: GrowingText, at: int) -> int:
    """Of a pattern that matches the empty text too."""
    match = pattern.match(text.value, at)
    assert match
    return match.end()
