"""Messages about tools for templates that know nothing of tools: in the Hermes format, which many models have seen.

The functions are listed in the system message, calls are part of an assistant's text, and answers are a user's.
"""

import json
from collections.abc import Sequence
from typing import Any

# Plain data of one message, as templates read it.
Plain = dict[str, Any]

INSTRUCTIONS = """\
You can call functions. These are the ones you have, each a JSON object in a line of its own:
<tools>
{tools}
</tools>
To call one, write its name and its arguments as a JSON object between these tags, once for each call:
<tool_call>
{{"name": "the function's name", "arguments": {{"argument": "value"}}}}
</tool_call>"""


def with_tools(messages: Sequence[Plain], tools: Sequence[Plain]) -> list[Plain]:
    """The functions described at the end of the system message, which is added where there is none."""
    text = INSTRUCTIONS.format(tools="\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
    first, *rest = messages
    if first["role"] != "system":
        return [{"role": "system", "content": text}, *messages]
    return [{**first, "content": f"{first['content']}\n\n{text}" if first["content"] else text}, *rest]


def with_calls_as_text(messages: Sequence[Plain]) -> list[Plain]:
    return [_call_as_text(message) if "tool_calls" in message else message for message in messages]


def with_answers_as_user(messages: Sequence[Plain]) -> list[Plain]:
    """Answers that follow each other become one message, as roles have to alternate in many templates."""
    made: list[Plain] = []
    was_tool = False
    for message in messages:
        is_tool = message["role"] == "tool"
        if is_tool:
            answer = f"<tool_response>\n{message['content']}\n</tool_response>"
            if was_tool:
                made[-1]["content"] += f"\n{answer}"
            else:
                made.append({"role": "user", "content": answer})
        else:
            made.append(message)
        was_tool = is_tool
    return made


def _call_as_text(message: Plain) -> Plain:
    functions = [call["function"] for call in message["tool_calls"]]
    calls = [
        json.dumps({"name": function["name"], "arguments": function["arguments"]}, ensure_ascii=False)
        for function in functions
    ]
    text = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)
    content = f"{message['content']}\n{text}" if message["content"] else text
    return {**{key: value for key, value in message.items() if key != "tool_calls"}, "content": content}
