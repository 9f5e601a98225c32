"""The lines of an input file: which are requests, which are not and why, and what they may come to at most."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.conf import settings

from controlplane.inference.embeddings import MAX_INPUTS
from controlplane.inference.fields import shown

MAX_FAULTS: Final = 100
LONGEST_CUSTOM_ID: Final = 512
EMBEDDINGS: Final = "/v1/embeddings"
_TEMPLATE_TOKENS: Final = 64  # what a chat template adds of its own
_BOM: Final = b"\xef\xbb\xbf"


class LineTooLong(Exception):
    """number: of the line."""

    def __init__(self, number: int) -> None:
        super().__init__(f"line {number} is too long")
        self.number = number


class Line(msgspec.Struct, frozen=True):
    """One request, as far as every line looks alike."""

    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


class _Sketch(msgspec.Struct):
    """What of a body bounds its cost."""

    model: str
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    best_of: int | None = None
    beam_width: int | None = None
    prompt: msgspec.Raw = msgspec.Raw(b"")


@dataclass(frozen=True)
class Bound:
    """The most that a line may use. model: by the name that the line has for it."""

    model: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Fault:
    """Why a line is no request."""

    line: int | None
    code: str
    message: str
    param: str | None = None

    def body(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "line": self.line, "param": self.param}


_line: Final = msgspec.json.Decoder(Line)
_sketch: Final = msgspec.json.Decoder(_Sketch)
_list: Final = msgspec.json.Decoder(list[msgspec.Raw])
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def raw_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and text of each line that is not blank. Raises LineTooLong."""
    number, rest = 0, b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for raw in whole:
            number += 1
            yield from _told(number, raw)
        if len(rest) > settings.MAX_BODY_BYTES:
            raise LineTooLong(number + 1)
    yield from _told(number + 1, rest)


def _told(number: int, raw: bytes) -> Iterator[tuple[int, bytes]]:
    if len(raw) > settings.MAX_BODY_BYTES:
        raise LineTooLong(number)
    text = raw.removeprefix(_BOM).strip() if number == 1 else raw.strip()
    if text:
        yield number, text


def parse_line(raw: bytes) -> Line:
    """Only for what `read_line` has let through."""
    return _line.decode(raw)


def read_line(number: int, raw: bytes, endpoint: str, known: set[str]) -> Line | Fault:
    """known: the custom ids of the lines before; this one's is added."""
    try:
        line = _line.decode(raw)
    except _UNREADABLE as exc:
        remedy = "send one JSON object a line, with custom_id, method, url and body"
        return Fault(number, "invalid_json_line", f"Line {number} cannot be read: {exc}; {remedy}.")
    fault = _fault_of(number, line, endpoint)
    if fault:
        return fault
    if line.custom_id in known:
        text = f"Line {number}: `custom_id` is {shown(line.custom_id)}, as on a line before: give each its own."
        return Fault(number, "duplicate_custom_id", text, "custom_id")
    known.add(line.custom_id)
    return line


def _fault_of(number: int, line: Line, endpoint: str) -> Fault | None:
    if not line.custom_id or len(line.custom_id) > LONGEST_CUSTOM_ID or "\x00" in line.custom_id:
        remedy = f"it must have 1 to {LONGEST_CUSTOM_ID} characters, and no NUL"
        return _fault(number, "custom_id", line.custom_id, remedy)
    if line.method != "POST":
        return _fault(number, "method", line.method, "it must be POST")
    if line.url != endpoint:
        return _fault(number, "url", line.url, f"it must be {endpoint}, the endpoint of the batch")
    if not bytes(line.body).lstrip().startswith(b"{"):
        return _fault(number, "body", bytes(line.body)[:60].decode(errors="replace"), "it must be an object")
    return None


def _fault(number: int, param: str, value: str, remedy: str) -> Fault:
    return Fault(number, f"invalid_{param}", f"Line {number}: `{param}` is {shown(value)}: {remedy}.", param)


def bound_of(line: Line, context_len: int) -> Bound | None:
    """None for a body that cannot run as it is.

    A byte is a token at most, and what a prompt's text needs beside it in the body is more than what a template adds,
    but for some tokens."""
    try:
        body = _sketch.decode(line.body)
        prompts = MAX_INPUTS if line.url == EMBEDDINGS else _prompts_in(bytes(body.prompt).lstrip())
    except _UNREADABLE:
        return None
    texts = prompts * max(1, body.n or 0, body.best_of or 0, body.beam_width or 0)
    wished = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    each = settings.DEFAULT_MAX_TOKENS if wished is None else max(0, wished)
    completion = 0 if line.url == EMBEDDINGS else texts * min(each, context_len)
    prompt = min(len(bytes(line.body)) + _TEMPLATE_TOKENS, prompts * context_len)
    return Bound(body.model, prompt, completion)


def _prompts_in(prompt: bytes) -> int:
    """A list of token ids is one prompt, a list of lists or texts is several."""
    if not prompt.startswith(b"["):
        return 1
    items = _list.decode(prompt)
    return max(1, len(items)) if items and bytes(items[0])[:1] in (b'"', b"[") else 1
