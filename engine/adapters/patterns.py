"""PEFT's pattern keys (`rank_pattern`, `alpha_pattern`): regular expressions from a stranger, matched in bounded time.

PEFT's rule: the first key, in the file's order, for which `re.match(rf"(.*\\.)?({key})$", module_name)` holds.
Python's own matcher backtracks and can be made to run for years, so keys that repeat or branch go through a matcher
that walks Python's parse tree with *sets* of positions: it never backtracks, and it counts its steps.
"""

import re
from collections.abc import Callable, Iterable
from re import _constants as op  # type: ignore[attr-defined]  # the one parser whose reading is PEFT's
from re import _parser  # type: ignore[attr-defined]
from typing import Any

MAX_KEYS = 4096
MAX_KEY_CHARS = 1000
MAX_STEPS = 2_000_000
_HARMLESS = re.compile(r"(?:\w|\.|\\[.dw])*", re.ASCII)

_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_NOT_DIGIT: lambda char: not char.isdecimal(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    op.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    op.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


class PatternError(ValueError):
    """The key is not a regular expression, or not one that we evaluate."""


class Patterns:
    """First match among keys. Raises PatternError on construction or, when matching takes too long, on use."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._matchers = [(key, _matcher(key)) for key in keys]
        self._fuel = _Fuel(MAX_STEPS)

    def first(self, name: str) -> str | None:
        """The first key that matches the module `name` as PEFT would."""
        try:
            return next((key for key, matches in self._matchers if matches(name, self._fuel)), None)
        except RecursionError as error:
            raise PatternError("it is nested too deep") from error


class _Fuel:
    def __init__(self, steps: int) -> None:
        self.left = steps

    def burn(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise PatternError("it takes too long to match")


def _matcher(key: str) -> Callable[[str, _Fuel], bool]:
    if len(key) > MAX_KEY_CHARS:
        raise PatternError(f"it is {len(key)} characters long (at most {MAX_KEY_CHARS})")
    whole = rf"(.*\.)?({key})$"
    if _HARMLESS.fullmatch(key):
        compiled = re.compile(whole)
        return lambda name, fuel: compiled.match(name) is not None
    try:
        tree = _parser.parse(whole)
        items = list(tree)
        _check(items)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(str(error)) from error
    if tree.state.flags & ~re.UNICODE:
        raise PatternError("it sets flags")
    return lambda name, fuel: bool(_walk(items, name, frozenset((0,)), fuel))


def _check(items: list[Any]) -> None:
    for kind, value in items:
        if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN, op.AT):
            continue
        for child in _children(kind, value):
            _check(child)


def _children(kind: Any, value: Any) -> list[list[Any]]:
    if kind is op.BRANCH:
        return [list(branch) for branch in value[1]]
    if kind is op.SUBPATTERN and not (value[1] or value[2]):
        return [list(value[3])]
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        return [list(value[2])]
    if kind in (op.ASSERT, op.ASSERT_NOT) and value[0] == 1:
        return [list(value[1])]
    raise PatternError(f"it uses a construct that is not supported here ({str(kind).lower()})")


def _walk(items: list[Any], text: str, starts: frozenset[int], fuel: _Fuel) -> frozenset[int]:
    """Every position where `items`, matched from one of `starts`, may end. Greedy or lazy makes no difference."""
    for kind, value in items:
        if not starts:
            break
        fuel.burn(len(starts))
        starts = _step(kind, value, text, starts, fuel)
    return starts


def _step(kind: Any, value: Any, text: str, starts: frozenset[int], fuel: _Fuel) -> frozenset[int]:
    if kind is op.AT:
        return frozenset(at for at in starts if _is_at(value, text, at))
    if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
        return frozenset(at + 1 for at in starts if at < len(text) and _accepts(kind, value, text[at]))
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        return _repeat(value, text, starts, fuel)
    branches = _children(kind, value)
    if kind in (op.ASSERT, op.ASSERT_NOT):
        wanted = kind is op.ASSERT
        return frozenset(at for at in starts if bool(_walk(branches[0], text, frozenset((at,)), fuel)) is wanted)
    return frozenset().union(*(_walk(branch, text, starts, fuel) for branch in branches))


def _repeat(value: Any, text: str, starts: frozenset[int], fuel: _Fuel) -> frozenset[int]:
    least, most, body = value
    ends: frozenset[int] = starts if least == 0 else frozenset()
    count = 0
    # Positions only advance, so the set empties or settles within len(text) rounds whatever the bounds say.
    while starts and count < most:
        following = _walk(list(body), text, starts, fuel)
        count += 1
        if following == starts:
            return ends | following
        starts = following
        if count >= least:
            if starts <= ends:
                break
            ends |= starts
    return ends


def _accepts(kind: Any, value: Any, char: str) -> bool:
    if kind is op.ANY:
        return char != "\n"
    if kind is op.LITERAL:
        return ord(char) == int(value)
    if kind is op.NOT_LITERAL:
        return ord(char) != int(value)
    negated = value[0][0] is op.NEGATE
    return any(_in_set(member, char) for member in value if member[0] is not op.NEGATE) is not negated


def _in_set(member: tuple[Any, Any], char: str) -> bool:
    kind, value = member
    if kind is op.LITERAL:
        return ord(char) == int(value)
    if kind is op.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return _CATEGORIES[value](char)


def _is_at(kind: Any, text: str, at: int) -> bool:
    if kind in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return at == 0
    if kind in (op.AT_END, op.AT_END_STRING):
        return at == len(text)
    before = at > 0 and _CATEGORIES[op.CATEGORY_WORD](text[at - 1])
    after = at < len(text) and _CATEGORIES[op.CATEGORY_WORD](text[at])
    return (before != after) is (kind is op.AT_BOUNDARY)
