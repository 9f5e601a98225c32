"""Chat messages -> prompt text, by the template that comes with the model."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.protocol import Message

MAX_TEMPLATE_CHARS = 1 << 18


class TemplateRefusal(Exception):
    """The template does not take these messages, or its text would be too long."""


class ChatTemplate:
    """source: Jinja as Hugging Face writes it. tokens: special tokens by the names templates use (`bos_token`, ...).

    Raises ValueError where the source is no template.
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        if len(source) > MAX_TEMPLATE_CHARS:
            raise ValueError(f"the chat template has {len(source)} characters; the limit is {MAX_TEMPLATE_CHARS}")
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now, **tokens}
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template is not valid Jinja: {error}") from error

    def render(self, messages: Sequence[Message], max_chars: int) -> str:
        """The prompt, ending where the assistant's turn begins. Raises TemplateRefusal."""
        plain = [{"role": message.role, "content": message.content} for message in messages]
        pieces, size = list[str](), 0
        try:
            for piece in self._template.generate(messages=plain, add_generation_prompt=True, tools=None):
                pieces.append(piece)
                size += len(piece)
                if size > max_chars:
                    raise TemplateRefusal(f"the prompt has more than {max_chars} characters")
        except TemplateRefusal:
            raise
        except Exception as error:  # a template is a program of the model's makers: it may raise anything
            raise TemplateRefusal(f"the model's chat template does not take these messages: {error}") from error
        return "".join(pieces)


def read_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str | None:
    """The template of a model folder: its own file first, then tokenizer_config.json; None where it has none."""
    own = folder / "chat_template.jinja"
    if own.exists():
        return own.read_text(encoding="utf-8")
    template = tokenizer_config.get("chat_template")
    if isinstance(template, list):  # several, by name
        template = next((entry["template"] for entry in template if entry.get("name") == "default"), None)
    return template if isinstance(template, str) else None


def _refuse(message: str) -> NoReturn:
    raise TemplateRefusal(message)


def _now(pattern: str) -> str:
    return datetime.now(UTC).strftime(pattern)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
