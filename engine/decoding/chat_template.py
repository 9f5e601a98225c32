"""Chat messages -> prompt text, by the template that comes with the model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.decoding.template_sandbox import Program, TemplateRefusal
from engine.decoding.tool_formats import detect_tool_format
from engine.decoding.tool_messages import Plain, with_answers_as_user, with_calls_as_text, with_tools
from engine.protocol import Message, Prepare

# What a request's template_options may not set.
RESERVED = frozenset({"messages", "tools", "add_generation_prompt"})
# Put at the end of a message that is to be gone on with, to find that place in the prompt. It ends with a blank, which
# shows whether the template cuts blanks off.
_OPEN_END = "\ue000open end of the last message\ue000 "


class ChatTemplate:
    """source: Jinja as Hugging Face writes it. tokens: special tokens by the names templates use (`bos_token`, ...).
    for_tools: the source of a second template, for requests with tools.

    What a template does not read (functions, calls, a tool's answer) is written into the messages' text, in the format
    of `tool_messages`. Raises ValueError where a source is no template.
    """

    def __init__(self, source: str, tokens: Mapping[str, str], for_tools: str | None = None) -> None:
        self._plain = _Dialect(source, tokens)
        self._for_tools = self._plain if for_tools is None else _Dialect(for_tools, tokens)
        self.tool_format = detect_tool_format(for_tools or source)
        self.source = source

    def render(self, prompt: Prepare, max_chars: int) -> str:
        """The prompt of its messages, ending where the assistant's turn begins, or where the last message is open.
        Raises TemplateRefusal."""
        taken = RESERVED.intersection(prompt.template_options)
        if taken:
            raise TemplateRefusal(f"template_options.{min(taken)} is set by the request itself: leave it out")
        dialect = self._for_tools if prompt.tools else self._plain
        variables = dialect.variables(prompt.messages or (), prompt.tools)
        variables |= {**prompt.template_options, "add_generation_prompt": not prompt.continue_last}
        if not prompt.continue_last:
            return dialect.program.run(variables, max_chars)
        last = variables["messages"][-1]
        last["content"] += _OPEN_END
        return _up_to_open_end(dialect.program.run(variables, max_chars))


class _Dialect:
    """A template, and what of tools it reads."""

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        self.program = Program(source, tokens)
        self._reads_tools = "tools" in self.program.names
        self._reads_calls = "tool_calls" in source
        self._reads_answers = "'tool'" in source or '"tool"' in source

    def variables(self, messages: Sequence[Message], tools: Sequence[Plain]) -> dict[str, Any]:
        plain = [_plain(message) for message in messages]
        if not self._reads_calls:
            plain = with_calls_as_text(plain)
        if not self._reads_answers:
            plain = with_answers_as_user(plain)
        if tools and not self._reads_tools:
            plain = with_tools(plain, tools)
        return {"messages": plain, "tools": list(tools) if tools and self._reads_tools else None}


def _plain(message: Message) -> Plain:
    """Without what is not set: templates ask whether a key is there."""
    optional = {
        "tool_calls": list(message.tool_calls),
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "reasoning_content": message.reasoning_content,
    }
    return {"role": message.role, "content": message.content} | {key: value for key, value in optional.items() if value}


def _up_to_open_end(text: str) -> str:
    found = text.rfind(_OPEN_END.rstrip())
    if found < 0:
        raise TemplateRefusal("the model's chat template leaves the last message out, so it cannot be gone on with")
    return text[:found] if text.startswith(_OPEN_END, found) else text[:found].rstrip()


def read_templates(folder: Path, tokenizer_config: Mapping[str, Any]) -> dict[str, str]:
    """The templates of a model folder by name, `default` and perhaps `tool_use`: its own file first, then
    tokenizer_config.json."""
    template = tokenizer_config.get("chat_template")
    named = {"default": template} if isinstance(template, str) else {}
    if isinstance(template, list):
        named = {entry["name"]: entry["template"] for entry in template}
    own = folder / "chat_template.jinja"
    return {**named, "default": own.read_text(encoding="utf-8")} if own.exists() else named
