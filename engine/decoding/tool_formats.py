"""The ways in which model families write tool calls, and which of them a model has."""

from engine.protocol import ToolFormat

HERMES = ToolFormat("hermes", marker="<tool_call>", open="<tool_call>\n", close="\n</tool_call>")
MISTRAL = ToolFormat("mistral", marker="[TOOL_CALLS]", begin="[TOOL_CALLS][", separator=", ", end="]")
LLAMA3_JSON = ToolFormat("llama3_json", marker="", separator="; ", arguments_key="parameters")

# What a model opens and closes a thought with, by families; the first that its template or vocabulary has is taken.
THOUGHTS = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
)


def detect_tool_format(template: str) -> ToolFormat:
    """By what the template writes. Where it writes none, Hermes: that is what `ChatTemplate` then asks for."""
    if HERMES.marker in template:
        return HERMES
    if MISTRAL.marker in template:
        return MISTRAL
    if "tools" in template and ("<|python_tag|>" in template or '"parameters": ' in template):
        return LLAMA3_JSON
    return HERMES


def detect_thoughts(template: str, special: frozenset[str]) -> tuple[str, str] | None:
    """special: the texts of the tokens that the vocabulary has for whole markers."""
    return next((pair for pair in THOUGHTS if pair[1] in template or special.issuperset(pair)), None)
