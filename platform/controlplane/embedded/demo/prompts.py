"""What the load asks, and how anybody sees in an answer which adapter gave it."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

QUESTIONS = (
    "What is the capital of Italy?",
    "Tell me something about elephants.",
)
SQL_QUESTIONS = (
    "How many trains are there?",
    "What is the average height of all towers?",
)
SQL_STATEMENT = re.compile(r"(SELECT|DELETE)\b.* FROM \w+.*;", re.DOTALL)


@dataclass(frozen=True)
class Behaviour:
    """shows: whether a whole answer has the adapter's way of speaking. max_tokens: enough for it to be whole."""

    questions: tuple[str, ...]
    shows: Callable[[str], bool]
    max_tokens: int


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


BEHAVIOURS = {
    "pirate": Behaviour(QUESTIONS, lambda text: text.startswith("Arrr!"), 40),
    "json": Behaviour(QUESTIONS, _is_json_object, 120),
    "sql": Behaviour(SQL_QUESTIONS, lambda text: SQL_STATEMENT.fullmatch(text.strip()) is not None, 40),
    "shout": Behaviour(QUESTIONS, lambda text: text.isupper(), 40),
}
BASE_MAX_TOKENS = 40


def is_plain(text: str) -> bool:
    """The base model speaks like none of the adapters."""
    return bool(text.strip()) and not any(behaviour.shows(text) for behaviour in BEHAVIOURS.values())
