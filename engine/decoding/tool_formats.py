"""Which of the ways to write tool calls, and to mark thoughts, a model has."""

from collections.abc import Container

from engine.protocol import ToolFormat

# What models open and close a thought with.
THOUGHTS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<thinking>", "</thinking>"))
# Tokens that mark calls or thoughts. They belong to the text even where the vocabulary calls them special.
MARKERS = frozenset(
    (
        "<tool_call>",
        "</tool_call>",
        "<|python_tag|>",
        "[TOOL_CALLS]",
        "[ARGS]",
        *(mark for pair in THOUGHTS for mark in pair),
    )
)


def detect_tool_format(template: str) -> ToolFormat:
    """By what the template writes. Where it writes none, hermes: that is what `ChatTemplate` then asks for."""
    if "tools" not in template or "<tool_call>" in template:
        return "hermes"
    if "[TOOL_CALLS]" in template:
        return "mistral"
    return "llama3" if "<|python_tag|>" in template or '"parameters"' in template else "hermes"


def detect_thoughts(template: str, tokens: Container[str]) -> tuple[str, str] | None:
    """What the template, or failing that the vocabulary, has whole marks for."""
    known = [pair for pair in THOUGHTS if pair[1] in template]
    known += [pair for pair in THOUGHTS if pair[0] in tokens and pair[1] in tokens]
    return known[0] if known else None
