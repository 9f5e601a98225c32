"""Prompts -> tokens, tokens -> text, and which tokens end an answer."""

import json
from pathlib import Path
from typing import Any

import tokenizers

from engine.decoding.chat_template import ChatTemplate, TemplateRefusal, read_template
from engine.decoding.text_stream import TextStream
from engine.protocol import EngineError, Prepare


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
    Raises TokenizerError.
    """

    def __init__(self, folder: Path, *, vocab_size: int, context_len: int) -> None:
        config = _read_json(folder / "tokenizer_config.json", required=False)
        self._tokenizer = _load(folder / "tokenizer.json")
        self._vocab_size, self._context_len = vocab_size, context_len
        self._max_chars = context_len * max(map(len, self._tokenizer.get_vocab()), default=1)
        self._template = _template(folder, config)
        self.eos_ids = _eos_ids(folder, config, self._tokenizer)

    def prepare(self, prompt: Prepare) -> tuple[int, ...]:
        """Token ids of a prompt of exactly one kind. Raises PromptRefused."""
        given = [field for field in ("messages", "text", "token_ids") if getattr(prompt, field) is not None]
        if len(given) != 1:
            raise _refused(
                prompt,
                "invalid_prompt",
                None,
                f"give one of messages, text, token_ids; got {' and '.join(given) or 'none'}",
            )
        if prompt.messages is not None:
            ids = self._encode(self._render(prompt), special=False)
        elif prompt.text is not None:
            self._check_chars(prompt, len(prompt.text), "text")
            ids = self._encode(prompt.text, special=True)
        else:
            ids = list(prompt.token_ids or ())
        return self._checked(prompt, ids, given[0])

    def stream(self, stop: tuple[str, ...] = (), *, include_stop: bool = False) -> TextStream:
        return TextStream(self.decode, stop, include_stop=include_stop)

    def piece(self, token: int) -> bytes:
        """A token's text, as bytes."""
        return self._tokenizer.decode([token], skip_special_tokens=False).encode()

    def decode(self, ids: list[int]) -> str:
        """Text without special tokens."""
        return self._tokenizer.decode(ids, skip_special_tokens=True)

    def _render(self, prompt: Prepare) -> str:
        messages = prompt.messages or ()
        if not messages:
            raise _refused(prompt, "invalid_prompt", "messages", "messages is empty: give at least one")
        if self._template is None:
            raise _refused(prompt, "invalid_prompt", "messages", "this model has no chat template: send text instead")
        self._check_chars(prompt, sum(len(message.content) for message in messages), "messages")
        try:
            return self._template.render(messages, 2 * self._max_chars)
        except TemplateRefusal as error:
            raise _refused(prompt, "invalid_prompt", "messages", str(error)) from error

    def _encode(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    def _check_chars(self, prompt: Prepare, size: int, param: str) -> None:
        """Refuse what cannot fit before spending time on it: no token is longer than the longest."""
        if size > self._max_chars:
            message = f"the prompt's {size} characters cannot fit the context of {self._context_len} tokens: shorten it"
            raise _refused(prompt, "context_length_exceeded", param, message)

    def _checked(self, prompt: Prepare, ids: list[int], param: str) -> tuple[int, ...]:
        if not ids:
            raise _refused(prompt, "invalid_prompt", param, f"{param} is empty: the prompt needs at least one token")
        outside = next((token for token in ids if not 0 <= token < self._vocab_size), None)
        if outside is not None:
            message = f"token id {outside} is not in the vocabulary of {self._vocab_size}"
            raise _refused(prompt, "invalid_prompt", param, message)
        if len(ids) >= self._context_len:
            message = (
                f"the prompt has {len(ids)} tokens; the context of {self._context_len} tokens has to hold it and at "
                "least one more: shorten it"
            )
            raise _refused(prompt, "context_length_exceeded", param, message)
        return tuple(ids)


def _refused(prompt: Prepare, code: str, param: str | None, message: str) -> PromptRefused:
    return PromptRefused(EngineError(ref=prompt.call_id, code=code, message=message, param=param))


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


def _template(folder: Path, config: dict[str, Any]) -> ChatTemplate | None:
    source = read_template(folder, config)
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {name: _token_text(config[name]) for name in names if config.get(name)}
    try:
        return None if source is None else ChatTemplate(source, tokens)
    except ValueError as error:
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
