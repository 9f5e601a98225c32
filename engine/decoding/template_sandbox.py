"""Where chat templates run: Hugging Face's dialect of Jinja, in a sandbox that also bounds time and memory.

A template is a program that came with a model: it may not reach Python, and it may not keep the engine from others.
"""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from jinja2 import Environment, Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEMPLATE_CHARS = 1 << 18
MAX_LOOP_STEPS = 1_000_000
MAX_SECONDS = 2.0
MAX_PRODUCT = 1 << 20
_STEP = "__step"


class TemplateRefusal(Exception):
    """The template does not take these messages, or its text would be too long."""


class GenerationTag(Extension):
    """`{% generation %}` marks, for training, what the assistant wrote; here its content is text like other text."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own type

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`'x' * 9999999999` would take all memory before a loop or a letter is counted."""
        sizes = [len(side) if isinstance(side, str | list | tuple) else abs(side) for side in (left, right)]
        if (sizes[0] * sizes[1] if operator == "*" else max(sizes) ** 2) > MAX_PRODUCT:
            raise TemplateRefusal(f"the model's chat template computes something too large with {operator}")
        return super().call_binop(context, operator, left, right)


class Program:
    """A compiled template. names: the variables it reads. Raises ValueError where the source is no template."""

    def __init__(self, source: str, variables: Mapping[str, Any]) -> None:
        if len(source) > MAX_TEMPLATE_CHARS:
            raise ValueError(f"the chat template has {len(source)} characters; the limit is {MAX_TEMPLATE_CHARS}")
        environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationTag])
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now, **variables}
        try:
            self._template, self.names = _compile(environment, source)
        except (TemplateError, RecursionError) as error:
            raise ValueError(f"the chat template is not valid Jinja: {error}") from error

    def run(self, variables: Mapping[str, Any], max_chars: int) -> str:
        """Raises TemplateRefusal."""
        pieces, size = list[str](), 0
        try:
            for piece in self._template.generate({**variables, _STEP: _step_counter()}):
                pieces.append(piece)
                size += len(piece)
                if size > max_chars:
                    raise TemplateRefusal(f"the prompt has more than {max_chars} characters")
        except TemplateRefusal:
            raise
        except Exception as error:  # a template is a program of the model's makers: it may raise anything
            raise TemplateRefusal(f"the model's chat template does not take these messages: {error}") from error
        return "".join(pieces)


def _compile(environment: Environment, source: str) -> tuple[Template, frozenset[str]]:
    """With a call at the head of every loop and macro that counts it."""
    tree = environment.parse(source)
    names = frozenset(name.name for name in tree.find_all(nodes.Name) if name.ctx == "load")
    loops, macros, calls = tree.find_all(nodes.For), tree.find_all(nodes.Macro), tree.find_all(nodes.CallBlock)
    for body in [node.body for node in loops] + [node.body for node in macros] + [node.body for node in calls]:
        step = nodes.Call(nodes.Name(_STEP, "load"), [], [], None, None)
        body.insert(0, nodes.ExprStmt(step).set_lineno(1).set_environment(environment))
    return environment.from_string(tree), names


def _step_counter() -> Callable[[], None]:
    deadline, steps = time.monotonic() + MAX_SECONDS, 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps > MAX_LOOP_STEPS or time.monotonic() > deadline:
            raise TemplateRefusal("the model's chat template takes too long with these messages")

    return step


def _refuse(message: str) -> NoReturn:
    raise TemplateRefusal(message)


def _now(pattern: str) -> str:
    return datetime.now(UTC).strftime(pattern)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
