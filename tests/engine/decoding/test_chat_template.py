"""Templates in the dialects of several families, written for these tests; transformers says what each should give."""

import json
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from engine.decoding.chat_template import ChatTemplate
from engine.decoding.template_sandbox import TemplateRefusal
from engine.decoding.tool_formats import detect_thoughts
from engine.protocol import Message, Prepare

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
CHATML = """\
{%- if tools %}
<|im_start|>system
{%- if messages[0].role == 'system' %}
{{ messages[0].content }}
{%- endif %}
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools><|im_end|>
{% endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {{- '<|im_start|>assistant\\n' + message.content }}
        {%- for call in message.tool_calls %}
            {{- '<tool_call>\\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
            {{- '\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- elif message.role != 'system' or not tools %}
        {{- '<|im_start|>' + message.role + '\\n' }}
        {%- if message.reasoning_content is defined %}<think>{{ message.reasoning_content }}</think>{% endif %}
        {{- message.content | trim + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}"""
HEADERS = """\
{{- bos_token }}
{%- macro head(role) %}<|start|>{{ role }}<|end|>

{% endmacro %}
{%- if tools is not none %}
    {{- head('system') + '{"name": ..., "parameters": ...}\\n' }}
    {%- for tool in tools %}{{ tool | tojson(indent=4) }}{% endfor %}
    {{- '<|eot|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if 'tool_calls' in message %}
        {%- set call = message.tool_calls[0].function %}
        {{- head('assistant') + '{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson + '}<|eot|>' }}
    {%- elif message.role in ['tool', 'ipython'] %}
        {{- head('ipython') + message.content | tojson + '<|eot|>' }}
    {%- else %}
        {{- head(message.role) + message.content + '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ head('assistant') }}{% endif %}"""
INSTRUCT = """\
{%- for message in messages %}
    {%- if loop.index0 == messages | length - 1 and tools is defined and tools %}
        {{- '[AVAILABLE_TOOLS]' + tools | map(attribute='function') | list | tojson + '[/AVAILABLE_TOOLS]' }}
    {%- endif %}
    {%- if message.role == 'user' %}{{ '[INST]' + message.content + '[/INST]' }}
    {%- elif message.tool_calls is defined %}
        {{- '[TOOL_CALLS]' + message.tool_calls | map(attribute='function') | list | tojson + eos_token }}
    {%- elif message.role == 'tool' %}
        {{- '[TOOL_RESULTS]' + {'content': message.content, 'call_id': message.tool_call_id} | tojson }}
    {%- elif message.role == 'assistant' %}{% generation %}{{ ' ' + message.content + eos_token }}{% endgeneration %}
    {%- else %}{{ raise_exception('no role ' + message.role) }}
    {%- endif %}
{%- endfor %}"""
BARE = """\
{%- for message in messages %}
    {%- if message.role not in ('system', 'user', 'assistant') %}{{ raise_exception('which role?') }}{% endif %}
    {{- message.role + ': ' + message.content + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}assistant:{% endif %}"""

TOOL = {
    "type": "function",
    "function": {"name": "wetter", "description": "für <Orte>", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"id": "call_0001", "type": "function", "function": {"name": "wetter", "arguments": {"ort": "Köln <&>", "n": 2}}}
TALK = (
    Message("system", "Be brief."),
    Message("user", " Hi "),
    Message("assistant", "Hello. "),
    Message("user", "日本?"),
)
WITH_CALL = (
    Message("user", "Wie ist es?"),
    Message("assistant", "", tool_calls=(CALL,)),
    Message("tool", "12 °C", tool_call_id="call_0001", name="wetter"),
    Message("user", "Und morgen?"),
)


def ours(template: str, prompt: Prepare) -> str:
    return ChatTemplate(template, TOKENS).render(prompt, 100_000)


def plain(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    made |= {"tool_calls": list(message.tool_calls)} if message.tool_calls else {}
    for name in ("tool_call_id", "name", "reasoning_content"):
        made |= {name: getattr(message, name)} if getattr(message, name) else {}
    return made


def theirs(template: str, prompt: Prepare) -> str:
    rendered, _ = render_jinja_template(
        [[plain(message) for message in prompt.messages or ()]],
        tools=list(prompt.tools) or None,
        chat_template=template,
        add_generation_prompt=not prompt.continue_last,
        continue_final_message=prompt.continue_last,
        **TOKENS,
        **prompt.template_options,
    )
    return str(rendered[0])


@pytest.mark.parametrize("template", [CHATML, HEADERS, INSTRUCT], ids=["chatml", "headers", "instruct"])
@pytest.mark.parametrize(
    "prompt",
    [
        Prepare("c", messages=TALK[1:]),
        Prepare("c", messages=WITH_CALL, tools=(TOOL,)),
        Prepare("c", messages=WITH_CALL),
        Prepare("c", messages=TALK[1:3], continue_last=True),
        Prepare("c", messages=(*TALK[1:], Message("assistant", "")), continue_last=True),
        Prepare("c", messages=TALK[1:2], template_options={"enable_thinking": False}, tools=(TOOL,)),
    ],
    ids=["talk", "tools", "calls", "open", "open and empty", "options"],
)
def test_a_template_that_knows_tools_gives_what_transformers_gives(template: str, prompt: Prepare) -> None:
    assert ours(template, prompt) == theirs(template, prompt)


def test_thoughts_of_before_reach_the_template() -> None:
    prompt = Prepare("c", messages=(TALK[1], Message("assistant", "Hello.", reasoning_content="A greeting."), TALK[1]))
    assert "<think>A greeting.</think>Hello." in ours(CHATML, prompt)
    assert ours(CHATML, prompt) == theirs(CHATML, prompt)


def test_a_template_that_knows_no_tools_is_given_them_as_text() -> None:
    prompt = Prepare("c", messages=(TALK[0], *WITH_CALL[:3], *WITH_CALL[2:]), tools=(TOOL,))
    text = ours(BARE, prompt)
    system, rest = text.split("user: ", 1)
    assert system.startswith("system: Be brief.\n\nYou can call functions.")
    assert json.dumps(TOOL, ensure_ascii=False) in system.splitlines()
    call = {"name": "wetter", "arguments": {"ort": "Köln <&>", "n": 2}}
    answer = "<tool_response>\n12 °C\n</tool_response>"
    assert rest == (
        f"Wie ist es?\nassistant: <tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>\n"
        f"user: {answer}\n{answer}\nuser: Und morgen?\nassistant:"
    )


def test_tools_without_a_system_message_get_one() -> None:
    assert ours(BARE, Prepare("c", messages=TALK[1:2], tools=(TOOL,))).startswith("system: You can call functions.")
    assert ours(BARE, Prepare("c", messages=TALK[1:2])) == "user:  Hi \nassistant:"


def test_requests_with_tools_use_the_template_that_is_for_them() -> None:
    template = ChatTemplate(BARE, TOKENS, for_tools=CHATML)
    assert template.render(Prepare("c", messages=TALK[1:2]), 9_999).startswith("user:")
    assert template.render(Prepare("c", messages=TALK[1:2], tools=(TOOL,)), 9_999).startswith("<|im_start|>")


@pytest.mark.parametrize(
    ("template", "tool_format", "thoughts"),
    [
        (CHATML, "hermes", ("<think>", "</think>")),
        (HEADERS, "llama3", None),
        (INSTRUCT, "mistral", None),
        (BARE, "hermes", None),
    ],
)
def test_the_formats_of_calls_and_thoughts_are_detected(
    template: str, tool_format: str, thoughts: tuple[str, str] | None
) -> None:
    assert ChatTemplate(template, TOKENS).tool_format == tool_format
    assert detect_thoughts(template, set()) == thoughts
    assert detect_thoughts(BARE, {"[THINK]", "[/THINK]"}) == ("[THINK]", "[/THINK]")


@pytest.mark.parametrize(
    ("template", "prompt", "message"),
    [
        (BARE, Prepare("c", messages=TALK, template_options={"messages": []}), "template_options.messages"),
        (INSTRUCT, Prepare("c", messages=TALK), "no role system"),
        ("{{ messages[0].content }}", Prepare("c", messages=TALK, continue_last=True), "cannot be gone on with"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            Prepare("c", messages=TALK),
            "too long",
        ),
        ("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", Prepare("c", messages=TALK), "take"),
        ("{{ 'x' * 999999999999 }}", Prepare("c", messages=TALK), "too large"),
        ("{{ 9 ** 999999999 }}", Prepare("c", messages=TALK), "too large"),
        ("{{ [1] * 99999999 }}", Prepare("c", messages=TALK), "too large"),
        ("{{ messages[0].update({'role': 1}) }}", Prepare("c", messages=TALK), "unsafe"),
        ("{% for i in range(90000) %}{{ 'x' * 9000 }}{% endfor %}", Prepare("c", messages=TALK), "more than"),
    ],
)
def test_a_template_that_refuses_or_misbehaves_is_stopped(template: str, prompt: Prepare, message: str) -> None:
    with pytest.raises(TemplateRefusal, match=message):
        ours(template, prompt)
