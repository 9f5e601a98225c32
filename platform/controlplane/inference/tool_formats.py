"""How model families write a tool call: one reader each, over a text that grows.

Sources: the chat templates of the families. hermes: `<tool_call>{"name", "arguments"}</tool_call>`; llama3: the answer
is `{"name", "parameters"}`, several joined by `;`, or follows `<|python_tag|>`; mistral: `[TOOL_CALLS][{...}, ...]`,
newer `[TOOL_CALLS]name[ARGS]{...}`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from controlplane.inference.growing_text import GrowingText, Steps, json_end, skip_space, starts_with
from engine.protocol import ToolFormat

_NAME = re.compile(r"[^\s\[{]*")


@dataclass(frozen=True)
class ToolCall:
    """arguments: the JSON object as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Offer:
    """The tools that may be called, and whether by more than one call."""

    names: frozenset[str]
    is_parallel: bool = True


# Reads what follows the opener; yields the calls, returns where they end, or None where there is not one.
Reader = Callable[[GrowingText, int, Offer], Steps[ToolCall, int | None]]


@dataclass(frozen=True)
class Format:
    """opener: what a call begins with. is_bare: an object that opens the answer is a call too."""

    opener: str
    read: Reader
    is_bare: bool = False


class _Written(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"")
    parameters: msgspec.Raw = msgspec.Raw(b"")


def _call_of(text: str | bytes | msgspec.Raw, offer: Offer) -> ToolCall | None:
    """None: this is no call of a tool on offer. A call that names no arguments has none."""
    try:
        written = msgspec.json.decode(text, type=_Written)
        arguments = bytes(written.arguments or written.parameters or b"{}").decode()
        found = msgspec.json.decode(arguments)
        if isinstance(found, str):  # JSON in JSON
            arguments, found = found, msgspec.json.decode(found)
    except (ValueError, RecursionError):
        return None
    is_call = isinstance(found, dict) and written.name in offer.names
    return ToolCall(written.name, arguments) if is_call else None


def _object_call(text: GrowingText, at: int, offer: Offer) -> Steps[ToolCall, tuple[ToolCall, int] | None]:
    if not text.value.startswith("{", at):
        return None
    end = yield from json_end(text, at)
    call = _call_of(text.value[at:end], offer) if end is not None else None
    return (call, end) if call and end is not None else None


def _hermes(text: GrowingText, at: int, offer: Offer) -> Steps[ToolCall, int | None]:
    at = yield from skip_space(text, at)
    found = yield from _object_call(text, at, offer)
    if found is None:
        return None
    call, end = found
    yield call
    closer = yield from skip_space(text, end)
    is_closed = yield from starts_with(text, closer, "</tool_call>")
    return closer + len("</tool_call>") if is_closed else end


def _llama3(text: GrowingText, at: int, offer: Offer) -> Steps[ToolCall, int | None]:
    last: int | None = None
    while True:
        at = yield from skip_space(text, at)
        found = yield from _object_call(text, at, offer)
        if found is None:
            return last
        call, last = found
        yield call
        at = yield from skip_space(text, last)
        if not offer.is_parallel or not text.value.startswith((";", ","), at):
            return last
        at += 1


def _mistral(text: GrowingText, at: int, offer: Offer) -> Steps[ToolCall, int | None]:
    at = yield from skip_space(text, at)
    if not text.value.startswith("[", at):
        return (yield from _mistral_named(text, at, offer))
    end = yield from json_end(text, at)
    if end is None:
        return None
    try:
        items = msgspec.json.decode(text.value[at:end], type=list[msgspec.Raw])
    except ValueError:
        return None
    calls = [call for item in items if (call := _call_of(item, offer))]
    if not calls or len(calls) < len(items) or (len(calls) > 1 and not offer.is_parallel):
        return None
    yield from calls
    return end


def _mistral_named(text: GrowingText, at: int, offer: Offer) -> Steps[ToolCall, int | None]:
    start = at
    while True:
        match = _NAME.match(text.value, start)
        assert match
        if match.end() < len(text.value) or text.is_whole:
            break
        yield None
    name, at = match.group(), match.end()
    if (yield from starts_with(text, at, "[ARGS]")):
        at = yield from skip_space(text, at + len("[ARGS]"))
    if not name or not text.value.startswith("{", at):
        return None
    end = yield from json_end(text, at)
    written = b'{"name":%b,"arguments":%b}' % (msgspec.json.encode(name), text.value[at:end].encode())
    call = _call_of(written, offer)
    if end is None or call is None:
        return None
    yield call
    return end


TOOL_FORMATS: Final[Mapping[ToolFormat, Format]] = {
    "hermes": Format("<tool_call>", _hermes),
    "llama3": Format("<|python_tag|>", _llama3, is_bare=True),
    "mistral": Format("[TOOL_CALLS]", _mistral),
}
