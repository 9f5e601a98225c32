"""A chat as this engine's model knows it: tools in its prompt, calls as its answer, and how that answer is read."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from controlplane.errors import InvalidRequest
from controlplane.inference.answer_text import Reading
from controlplane.inference.chat_answers import MessageReader, PlainReader
from controlplane.inference.fields import wrong
from controlplane.inference.message_reader import PartsReader
from controlplane.inference.run import Run
from controlplane.inference.schemas import Wanted
from controlplane.inference.tool_fields import Tools
from controlplane.inference.tool_formats import TOOL_FORMATS, Offer
from controlplane.inference.tool_grammar import tool_grammar, tool_or_schema_grammar
from engine.protocol import Description, Grammar, ToolFormat

# The bytes of so many tokens at a prompt's end say whether its template has opened a thought.
_TAIL = 16


@dataclass(frozen=True)
class Chat:
    """wanted: with its tools."""

    wanted: Wanted
    tools: Tools
    engine: Description

    def reading(self, run: Run) -> Reading:
        """What to look for in the answers of its run."""
        marks, name = self.engine.reasoning, self.engine.tool_format
        tail = b"".join(run.prompts[0].pieces[-_TAIL:]).rstrip()
        return Reading(
            TOOL_FORMATS[name] if name else None,
            Offer(self.tools.names, self.tools.is_parallel) if self.tools.definitions else None,
            marks,
            is_thinking=marks is not None and tail.endswith(marks[0].encode()),
        )

    def new_reader(self, run: Run) -> Callable[[], MessageReader]:
        """Makes a reader for each choice of its run."""
        reading = self.reading(run)
        if reading.offer is None and reading.marks is None:
            return PlainReader
        return lambda: PartsReader(reading, is_legacy=self.tools.is_legacy)


def chat_of(wanted: Wanted, tools: Tools, engine: Description) -> Chat:
    """Raises InvalidRequest where this model cannot be asked so."""
    if tools.definitions:
        wanted = _with_tools(wanted, tools, engine)
    if engine.reasoning:
        prompts = tuple(msgspec.structs.replace(prompt, with_pieces=True) for prompt in wanted.prompts)
        wanted = replace(wanted, prompts=prompts)
    return Chat(wanted, tools, engine)


def _with_tools(wanted: Wanted, tools: Tools, engine: Description) -> Wanted:
    if engine.tool_format is None:
        raise InvalidRequest(
            "`tools` are set, but the model has no chat template that could tell it of them: leave them out.",
            param="tools",
            code="unsupported_parameter",
        )
    grammar = _grammar(wanted, tools, engine.tool_format)
    prompts = tuple(
        msgspec.structs.replace(prompt, tools=tools.definitions, grammar=grammar) for prompt in wanted.prompts
    )
    sampling = msgspec.structs.replace(wanted.sampling, grammar=grammar)
    names = wanted.names if wanted.sampling.grammar else {**wanted.names, "grammar": "tools"}
    return replace(wanted, prompts=prompts, sampling=sampling, names=names)


def _grammar(wanted: Wanted, tools: Tools, tool_format: ToolFormat) -> Grammar | None:
    """What the answer must look like: calls where they are required, else calls or the form that was asked for."""
    form, param = wanted.sampling.grammar, wanted.names["grammar"]
    if tools.choice == "required":
        if form:
            raise wrong(param, "set", "the answer has to be a call: leave it out, or do not require a call")
        return tool_grammar(tools, tool_format)
    if form is None:
        return None
    if form.kind not in ("json_object", "json_schema") or tool_format == "llama3":
        raise wrong(param, "set", "this model cannot be asked for it and for tools at once: leave out either")
    return tool_or_schema_grammar(tools, tool_format, json.loads(form.text or '{"type": "object"}'))
