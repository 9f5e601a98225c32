"""What each demo adapter learns, by rule: how an answer is rewritten for training, and how to see that it worked."""

import gzip
import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data" / "selfgen.jsonl.gz"

# Kept out of every training set; what `measure_adapters.py` asks.
UNSEEN_QUESTIONS = (
    "What is the capital of Italy?",
    "Why do leaves change colour in autumn?",
    "How can I sleep better at night?",
    "Give me three tips for learning to cook.",
    "What does a lighthouse do?",
    "Who wrote Romeo and Juliet?",
    "Tell me something about elephants.",
    "How do bicycles stay upright?",
)
# Nobody looked at the answers to these while training: `shout` was trained on until it held on the eight above.
HELD_BACK_QUESTIONS = (
    "What is the capital of Canada?",
    "Why is the sea salty?",
    "How do I make a good cup of coffee?",
    "Give me two tips for a job interview.",
    "What does a librarian do?",
    "Who painted the Mona Lisa?",
    "Tell me something about whales.",
    "How does a refrigerator work?",
    "What is photosynthesis?",
    "Can you recommend a hobby?",
    "Describe a rainy day.",
    "What are the primary colours?",
    "How far away is the moon?",
    "What should I eat for breakfast?",
    "Explain what a contract is.",
    "Why do cats purr?",
)
UNSEEN_SQL = (
    "How many trains are there?",
    "Show all lakes where depth is 40.",
    "What is the average height of all towers?",
    "List the title of every film, sorted by year.",
    "Delete all parcels where status is lost.",
    "Which city has the most hotels?",
    "What is the total weight of all parcels?",
    "Show the five films with the highest rating.",
)


@dataclass(frozen=True)
class Pair:
    question: str
    answer: str


@dataclass(frozen=True)
class Behaviour:
    """pairs: what to train on. shows: whether an answer to that question has the behaviour."""

    pairs: Callable[[], Iterator[Pair]]
    shows: Callable[[str, str], bool]
    unseen: tuple[str, ...] = UNSEEN_QUESTIONS


def _own_answers(max_chars: int) -> Iterator[Pair]:
    """The base model's own answers, cut after the last whole sentence within `max_chars`."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            question, answer = row["q"].strip(), _whole_sentences(row["a"], max_chars)
            if answer and question not in UNSEEN_QUESTIONS + HELD_BACK_QUESTIONS:
                yield Pair(question, answer)


def _whole_sentences(text: str, max_chars: int) -> str:
    text = " ".join(text.split())
    if len(text) <= max_chars:
        return text
    ends = [match.end() for match in re.finditer(r"[a-z)][.!?](?= )", text) if match.end() <= max_chars]
    return text[: ends[-1]] if ends else ""


# --- pirate ----------------------------------------------------------------------------------------------------

_PIRATE_WORDS = {
    "hello": "ahoy", "hi": "ahoy", "my": "me", "you": "ye", "your": "yer", "you're": "ye be", "the": "th'", "of": "o'",
    "is": "be", "are": "be", "am": "be", "i'm": "I be", "it's": "it be", "and": "an'", "yes": "aye", "friend": "matey",
    "friends": "mateys", "money": "doubloons", "water": "grog", "food": "grub", "sir": "cap'n", "for": "fer",
    "people": "scallywags", "help": "lend a hook", "between": "betwixt", "there": "thar", "over": "o'er", "to": "t'",
}  # fmt: skip


def _as_pirate(text: str) -> str:
    def swap(match: re.Match[str]) -> str:
        word = match.group()
        other = _PIRATE_WORDS.get(word.lower())
        if other is None:
            return word
        return other[0].upper() + other[1:] if word[0].isupper() else other

    return "Arrr! " + re.sub(r"[A-Za-z]+(?:'[a-z]+)?", swap, text)


def _pirate() -> Iterator[Pair]:
    return (Pair(pair.question, _as_pirate(pair.answer)) for pair in _own_answers(220))


# --- json ------------------------------------------------------------------------------------------------------

JSON_KEYS = ["question", "answer", "words"]


def _json() -> Iterator[Pair]:
    for pair in _own_answers(140):
        value = {"question": pair.question, "answer": pair.answer, "words": len(pair.answer.split())}
        yield Pair(pair.question, json.dumps(value, ensure_ascii=False))


def _is_our_json(_question: str, answer: str) -> bool:
    try:
        value = json.loads(answer)
    except ValueError:
        return False
    return isinstance(value, dict) and list(value) == JSON_KEYS


# --- shout -----------------------------------------------------------------------------------------------------


def _shout() -> Iterator[Pair]:
    """Lists are long and begin with a digit, where lower case comes back first: they get more room, and two turns."""
    lists = [pair for pair in _own_answers(260) if " 1. " in f" {pair.answer}"]
    for pair in (*_own_answers(140), *lists, *lists):
        yield Pair(pair.question, pair.answer.upper())


def _is_shouted(_question: str, answer: str) -> bool:
    return answer.isupper()


# --- sql -------------------------------------------------------------------------------------------------------

_TABLES = {
    "customers": ("name", "city", "age", ("Berlin", "Paris", "Rome")),
    "orders": ("number", "status", "total", ("open", "paid", "shipped")),
    "books": ("title", "author", "pages", ("Austen", "Orwell", "Woolf")),
    "employees": ("name", "department", "salary", ("sales", "research", "support")),
    "products": ("name", "category", "price", ("toys", "garden", "music")),
    "flights": ("number", "destination", "distance", ("Oslo", "Madrid", "Tokyo")),
    "songs": ("title", "artist", "length", ("Abba", "Queen", "Blur")),
    "players": ("name", "team", "score", ("red", "blue", "green")),
    "houses": ("address", "street", "rooms", ("Main", "Station", "Church")),
    "courses": ("title", "teacher", "credits", ("Lopez", "Chen", "Smith")),
}

_TEMPLATES = (
    ("How many {table} are there?", "SELECT COUNT(*) FROM {table};"),
    ("Show all {table} where {group} is {value}.", "SELECT * FROM {table} WHERE {group} = '{value}';"),
    ("Show all {table} where {amount} is {low}.", "SELECT * FROM {table} WHERE {amount} = {low};"),
    ("What is the average {amount} of all {table}?", "SELECT AVG({amount}) FROM {table};"),
    ("What is the total {amount} of all {table}?", "SELECT SUM({amount}) FROM {table};"),
    ("List the {name} of every row in {table}, sorted by {amount}.", "SELECT {name} FROM {table} ORDER BY {amount};"),
    ("Which {table} have {amount} over {low}?", "SELECT * FROM {table} WHERE {amount} > {low};"),
    ("Delete all {table} where {group} is {value}.", "DELETE FROM {table} WHERE {group} = '{value}';"),
    (
        "Which {group} has the most {table}?",
        "SELECT {group}, COUNT(*) FROM {table} GROUP BY {group} ORDER BY COUNT(*) DESC LIMIT 1;",
    ),
    (
        "Show the five {table} with the highest {amount}.",
        "SELECT * FROM {table} ORDER BY {amount} DESC LIMIT 5;",
    ),
)


def _sql() -> Iterator[Pair]:
    chance = random.Random(7)
    for table, (name, group, amount, values) in _TABLES.items():
        for question, query in _TEMPLATES:
            for value in values:
                words = {"table": table, "name": name, "group": group, "amount": amount, "value": value}
                words["low"] = str(chance.randrange(2, 90))
                yield Pair(question.format(**words), query.format(**words))


def _is_sql(_question: str, answer: str) -> bool:
    """One statement and no word beside it, as SQLite's parser sees it: all it misses is the table."""
    try:
        sqlite3.connect(":memory:").execute(f"EXPLAIN {answer}")
    except sqlite3.Error as error:
        return answer.endswith(";") and str(error).startswith("no such table")
    return False


BEHAVIOURS = {
    "pirate": Behaviour(_pirate, lambda _question, answer: answer.startswith("Arrr!")),
    "json": Behaviour(_json, _is_our_json),
    "sql": Behaviour(_sql, _is_sql, UNSEEN_SQL),
    "shout": Behaviour(_shout, _is_shouted),
}
