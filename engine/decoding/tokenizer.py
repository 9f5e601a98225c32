"""Prompts -> tokens, tokens -> text, and which tokens end an answer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
from llguidance import LLTokenizer

from engine.decoding.chat_template import ChatTemplate, read_templates
from engine.decoding.grammar import Grammars
from engine.decoding.template_sandbox import TemplateRefusal
from engine.decoding.text_stream import TextStream
from engine.decoding.tool_formats import MARKERS, detect_thoughts
from engine.protocol import Detokenize, Detokenized, EngineError, Prepare, Prepared, ToolFormat


class TokenizerError(Exception):
    """The model folder's tokenizer cannot be used; the message says why."""


class PromptRefused(Exception):
    """A prompt that cannot be served. `error` is what to answer."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(error.message)
        self.error = error


class Tokenizer:
    """The tokenizer of one model folder. Safe to use from several threads.

    vocab_size: rows of the model's embedding; ids beyond it are refused. context_len: tokens a sequence may have.
    tool_format, reasoning: see `Description`. Raises TokenizerError.
    """

    def __init__(self, folder: Path, *, vocab_size: int, context_len: int) -> None:
        config = _read_json(folder / "tokenizer_config.json", required=False)
        self._tokenizer = _load(folder / "tokenizer.json")
        self._vocab_size, self._context_len = vocab_size, context_len
        self._max_chars = context_len * max(map(len, self._tokenizer.get_vocab()), default=1)
        self._template = _template(folder, config)
        self.eos_ids = _eos_ids(folder, config, self._tokenizer)
        self._bytes = _byte_tokenizer(self._tokenizer, vocab_size, self.eos_ids)
        self._known = 1 + max(self._tokenizer.get_vocab().values(), default=-1)
        added = self._tokenizer.get_added_tokens_decoder()
        self._unwritten = frozenset(i for i, token in added.items() if token.special and token.content not in MARKERS)
        self.tool_format: ToolFormat | None = self._template.tool_format if self._template else None
        texts = {token.content for token in added.values()}
        self.reasoning = detect_thoughts(self._template.source, texts) if self._template else None

    def grammars(self) -> Grammars:
        """What holds texts of this vocabulary to grammars."""
        return Grammars(self._bytes, self._vocab_size)

    def prepare(self, prompt: Prepare) -> Prepared:
        """Token ids of a prompt of exactly one kind. Raises PromptRefused."""
        given = [field for field in ("messages", "text", "token_ids") if getattr(prompt, field) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise _refused(prompt, "invalid_prompt", None, f"give one of messages, text, token_ids; got {found}")
        text = self._text(prompt)
        ids = list(prompt.token_ids or ()) if text is None else self._encode(prompt, text)
        self._check(prompt, ids, given[0])
        pieces = tuple(map(self.piece, ids)) if prompt.with_pieces else ()
        is_thinking = prompt.messages is not None and self._ends_in_thought(text or "")
        return Prepared(prompt.call_id, tuple(ids), pieces, is_thinking)

    def detokenize(self, call: Detokenize) -> Detokenized:
        """The text, with special tokens written out. Raises PromptRefused."""
        self._check_ids(call, call.token_ids)
        return Detokenized(call.call_id, self._tokenizer.decode(list(call.token_ids), skip_special_tokens=False))

    def stream(self, stop: tuple[str, ...] = (), *, include_stop: bool = False) -> TextStream:
        return TextStream(self.decode, stop, include_stop=include_stop)

    def decode(self, ids: list[int]) -> str:
        """Text without special tokens, but for those that mark a call or a thought."""
        written = [token for token in ids if token not in self._unwritten]
        return self._tokenizer.decode(written, skip_special_tokens=False)

    def piece(self, token: int) -> bytes:
        """A token's own bytes, which may be a part of a character; none for a row of the model that has no token."""
        return self._bytes.decode_bytes([token]) if token < self._known else b""

    def _ends_in_thought(self, text: str) -> bool:
        return self.reasoning is not None and text.rstrip().endswith(self.reasoning[0])

    def _text(self, prompt: Prepare) -> str | None:
        if prompt.messages is not None:
            return self._render(prompt)
        if prompt.text is not None:
            self._check_chars(prompt, len(prompt.text), "text")
        return prompt.text

    def _render(self, prompt: Prepare) -> str:
        messages = prompt.messages or ()
        if not messages:
            raise _refused(prompt, "invalid_prompt", "messages", "messages is empty: give at least one")
        if self._template is None:
            raise _refused(prompt, "invalid_prompt", "messages", "this model has no chat template: send text instead")
        self._check_chars(prompt, _chars(prompt), "messages")
        try:
            return self._template.render(prompt, 2 * self._max_chars)
        except TemplateRefusal as error:
            raise _refused(prompt, "invalid_prompt", "messages", str(error)) from error

    def _encode(self, prompt: Prepare, text: str) -> list[int]:
        """A template writes the special tokens itself."""
        special = prompt.special_tokens and prompt.messages is None
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    def _check_chars(self, prompt: Prepare, size: int, param: str) -> None:
        """Refuse what cannot fit before spending time on it: no token is longer than the longest."""
        if size > self._max_chars:
            message = f"the prompt's {size} characters cannot fit the context of {self._context_len} tokens: shorten it"
            raise _refused(prompt, "context_length_exceeded", param, message)

    def _check(self, prompt: Prepare, ids: list[int], param: str) -> None:
        if not ids:
            raise _refused(prompt, "invalid_prompt", param, f"{param} is empty: the prompt needs at least one token")
        self._check_ids(prompt, ids)
        if len(ids) >= self._context_len:
            message = (
                f"the prompt has {len(ids)} tokens; the context of {self._context_len} tokens has to hold it and at "
                "least one more: shorten it"
            )
            raise _refused(prompt, "context_length_exceeded", param, message)

    def _check_ids(self, call: Prepare | Detokenize, ids: Sequence[int]) -> None:
        outside = next((token for token in ids if not 0 <= token < self._vocab_size), None)
        if outside is not None:
            message = f"token id {outside} is not in the vocabulary of {self._vocab_size}"
            raise _refused(call, "invalid_prompt", "token_ids", message)


def _refused(call: Prepare | Detokenize, code: str, param: str | None, message: str) -> PromptRefused:
    return PromptRefused(EngineError(ref=call.call_id, code=code, message=message, param=param))


def _chars(prompt: Prepare) -> int:
    """Of all that may come to stand in the prompt, about."""
    messages = prompt.messages or ()
    said = sum(len(message.content) + len(message.reasoning_content or "") for message in messages)
    return said + sum(len(str(tool)) for tool in (*prompt.tools, *(call for m in messages for call in m.tool_calls)))


def _load(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise TokenizerError(f"{path} is missing: the model folder needs the tokenizer in this form")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise TokenizerError(f"{path} cannot be read: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _byte_tokenizer(tokenizer: tokenizers.Tokenizer, vocab_size: int, eos_ids: frozenset[int]) -> LLTokenizer:
    """The same vocabulary, as bytes."""
    rows = max(vocab_size, 1 + max(tokenizer.get_vocab().values(), default=0))
    try:
        return LLTokenizer(tokenizer.to_str(), n_vocab=rows, eos_token=sorted(eos_ids) or None)
    except ValueError as error:
        raise TokenizerError(f"tokenizer.json is of a kind whose tokens have no bytes of their own: {error}") from error


def _template(folder: Path, config: dict[str, Any]) -> ChatTemplate | None:
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {name: _token_text(config[name]) for name in names if config.get(name)}
    try:
        sources = read_templates(folder, config)
        default = sources.get("default")
        return None if default is None else ChatTemplate(default, tokens, sources.get("tool_use"))
    except (ValueError, KeyError, TypeError) as error:
        raise TokenizerError(f"{folder}: {error}") from error


def _token_text(entry: str | dict[str, Any]) -> str:
    """A special token is written as text, or as an object with its text in `content`."""
    return entry if isinstance(entry, str) else str(entry["content"])


def _eos_ids(folder: Path, config: dict[str, Any], tokenizer: tokenizers.Tokenizer) -> frozenset[int]:
    """Every id that any of the model's files calls the end."""
    ids: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        entry = _read_json(folder / name, required=name == "config.json").get("eos_token_id")
        ids.update(entry if isinstance(entry, list) else [] if entry is None else [entry])
    if config.get("eos_token"):
        token = tokenizer.token_to_id(_token_text(config["eos_token"]))
        ids.update(() if token is None else (token,))
    return frozenset(ids)


def _read_json(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.exists() and not required:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise TokenizerError(f"{path} has to hold a JSON object")
    return content
