"""Grammars over the real vocabulary. What comes out under a schema is judged by `jsonschema`."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.decoding.constraint import ConstraintRefused
from engine.decoding.grammar import KEPT_GRAMMARS, GrammarConstraint, Grammars
from engine.decoding.grammar_source import MAX_GRAMMAR_CHARS
from engine.decoding.tokenizer import Tokenizer
from engine.protocol import Grammar, Prepare

VOCAB, EOS = 49_152, 2
# Tokens with these are likelier in a random text, so that it comes to an end.
CLOSERS = frozenset(b'"}],')


@pytest.fixture(scope="module")
def tokenizer(base_model: Path) -> Tokenizer:
    return Tokenizer(base_model, vocab_size=VOCAB, context_len=8192)


@pytest.fixture(scope="module")
def grammars(tokenizer: Tokenizer) -> Grammars:
    return tokenizer.grammars()


def schema(content: dict[str, Any]) -> Grammar:
    return Grammar("json_schema", json.dumps(content))


def allowed(constraint: GrammarConstraint) -> Tensor:
    """Ids, int64 [n]."""
    bits = constraint.mask()[:, None] >> torch.arange(32, dtype=torch.int32) & 1
    return bits.flatten().nonzero().flatten()


class Writer:
    """Writes random texts that a grammar takes. Closing brackets and quotes are likelier, so that they end."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._decode = tokenizer.decode
        self._closes = torch.tensor([id == EOS or bool(CLOSERS & set(tokenizer.piece(id))) for id in range(VOCAB)])

    def write(self, constraint: GrammarConstraint, seed: int, limit: int = 100) -> str | None:
        """None: it was still going on after `limit` tokens."""
        rng, ids = random.Random(seed), list[int]()
        for _ in range(limit):
            choices = allowed(constraint)
            closing = choices[self._closes[choices]]
            choices = closing if len(closing) and rng.random() < 0.4 else choices
            ids.append(int(choices[rng.randrange(len(choices))]))
            if constraint.accept(ids[-1]):
                return self._decode(ids)
        return None


@pytest.fixture(scope="module")
def writer(tokenizer: Tokenizer) -> Writer:
    return Writer(tokenizer)


SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b", "a"]},
    {"type": "array", "items": {"enum": ["red", "grün", '"quoted"', "a\\b"]}, "minItems": 2, "maxItems": 4},
    {
        "type": "object",
        "properties": {"n": {"type": "number", "minimum": -2.5, "exclusiveMaximum": 9}},
        "required": ["n"],
    },
    {"type": "string", "pattern": "^[a-z]{2,5}-[0-9]+$"},
    {"type": "string", "minLength": 3, "maxLength": 6},
    {"type": ["null", "boolean"]},
    {
        "anyOf": [
            {"type": "string", "const": "none"},
            {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]},
        ]
    },
    {
        "$defs": {
            "tree": {"type": "object", "properties": {"sub": {"$ref": "#/$defs/tree"}}, "additionalProperties": False}
        },
        "$ref": "#/$defs/tree",
    },
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 0},
]


@pytest.mark.parametrize("content", SCHEMAS, ids=lambda content: json.dumps(content)[:40])
def test_every_text_under_a_schema_is_valid(writer: Writer, grammars: Grammars, content: dict[str, Any]) -> None:
    texts = [writer.write(grammars.constraint(schema(content)), seed) for seed in range(6)]
    done = [text for text in texts if text is not None]
    assert done
    for text in done:
        jsonschema.validate(json.loads(text), content)


# This vocabulary has no token for some bytes, thus cannot write some planes of Unicode.
LETTERS = 'ab ö日🙂"\\\n\x00/'
names = st.text('abcö_ "\\', min_size=1, max_size=6)
leaves = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.builds(
        lambda low, size: {"type": "integer", "minimum": low, "maximum": low + size},
        st.integers(-99, 99),
        st.integers(0, 50),
    ),
    st.builds(
        lambda low, size: {"type": "string", "minLength": low, "maxLength": low + size},
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    st.lists(
        st.one_of(st.text(LETTERS, max_size=4), st.integers(), st.none(), st.booleans()), min_size=1, max_size=4
    ).map(lambda values: {"enum": values}),
)


def parent(children: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def as_object(properties: dict[str, dict[str, Any]], required: int, is_open: bool) -> dict[str, Any]:
        made = {"type": "object", "properties": properties, "required": list(properties)[:required]}
        return made if is_open else {**made, "additionalProperties": False}

    return st.one_of(
        st.builds(as_object, st.dictionaries(names, children, max_size=3), st.integers(0, 3), st.booleans()),
        st.builds(
            lambda items, low: {"type": "array", "items": items, "minItems": low, "maxItems": low + 2},
            children,
            st.integers(0, 2),
        ),
        st.lists(children, min_size=1, max_size=3).map(lambda options: {"anyOf": options}),
    )


@settings(max_examples=60, deadline=None)
@given(content=st.recursive(leaves, parent, max_leaves=6), seed=st.integers(0, 9))
def test_any_small_schema_gives_valid_texts(
    writer: Writer, grammars: Grammars, content: dict[str, Any], seed: int
) -> None:
    text = writer.write(grammars.constraint(schema(content)), seed)
    if text is not None:
        jsonschema.validate(json.loads(text), content)


@pytest.mark.parametrize(
    ("grammar", "is_match"),
    [
        (Grammar("regex", r"(yes|no), [0-9]{1,3}!"), re.compile(r"(yes|no), [0-9]{1,3}!").fullmatch),
        (Grammar("choice", '["one", "two\\n", "zwölf \\"12\\""]'), ["one", "two\n", 'zwölf "12"'].__contains__),
        (Grammar("lark", 'start: word ("," word)*\nword: /[ab]+/'), re.compile("[ab]+(,[ab]+)*").fullmatch),
        (Grammar("json_object"), lambda text: isinstance(json.loads(text), dict)),
    ],
)
def test_every_text_under_a_grammar_matches(
    writer: Writer, grammars: Grammars, grammar: Grammar, is_match: Callable[[str], Any]
) -> None:
    texts = [writer.write(grammars.constraint(grammar), seed) for seed in range(12)]
    done = [text for text in texts if text is not None]
    assert done
    assert all(is_match(text) for text in done)


def test_a_text_ends_where_it_may_and_where_it_must(tokenizer: Tokenizer, grammars: Grammars) -> None:
    a = tokenizer.prepare(Prepare("c", text="a")).token_ids[0]
    constraint = grammars.constraint(Grammar("regex", "a{1,2}"))
    assert EOS not in allowed(constraint).tolist()
    assert not constraint.accept(a)
    assert EOS in allowed(constraint).tolist()
    assert constraint.accept(a)  # nothing can follow: no end-of-text token is waited for
    assert allowed(constraint).tolist() == [EOS]
    constraint.rollback(1)
    assert constraint.accept(EOS)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=5), st.integers(0, 99))
def test_what_is_taken_back_leaves_no_trace(grammars: Grammars, moves: list[tuple[int, int]], seed: int) -> None:
    grammar = Grammar("regex", r"(ab|[0-9]{2}|\{.\}){1,6}")
    rng, constraint, tokens = random.Random(seed), grammars.constraint(grammar), list[int]()
    for forward, back in moves:
        for _ in range(forward):
            tokens.append(rng.choice(allowed(constraint).tolist()))
            constraint.accept(tokens[-1])
        back = min(back, len(tokens))
        constraint.rollback(back)
        tokens = tokens[: len(tokens) - back]
        fresh = grammars.constraint(grammar)
        for token in tokens:
            fresh.accept(token)
        assert allowed(constraint).equal(allowed(fresh))


@pytest.mark.parametrize("vocab_size", [49_152, 49_155, 49_280, 49_100])
def test_rows_that_are_no_token_are_never_allowed(base_model: Path, vocab_size: int) -> None:
    tokenizer = Tokenizer(base_model, vocab_size=vocab_size, context_len=64)
    constraint = tokenizer.grammars().constraint(Grammar("regex", "(?s:.*)"))
    assert len(constraint.mask()) == (vocab_size + 31) // 32
    assert allowed(constraint).max() < VOCAB
    assert len(allowed(constraint)) > 40_000


def deep(levels: int) -> str:
    return '{"properties":{"a":' * levels + "{}" + "}}" * levels


def doubling(levels: int, keyword: str) -> str:
    """Each definition refers to the next one twice: 2**levels when written out."""
    step = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"type": "object", "properties": {"x": {"const": i}}}]}
        for i in range(levels)
    }
    return json.dumps({"$defs": {**step, f"d{levels}": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/d0"}] * 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "foo"}', "Invalid type: foo: use string, number"),
        ('{"$ref": "#"}', "give every recursion a way to end"),
        ('{"$ref": "http://example.com/s.json"}', r"`#/\$defs/NAME`"),
        ('{"$ref": "file:///etc/passwd"}', r"`#/\$defs/NAME`"),
        ('{"$ref": "#/$defs/none"}', "does not exist"),
        ('{"not": {"type": "string"}}', "leave these keywords out"),
        ('{"x-guidance": {"lenient": true}, "not": {"type": "string"}}', "leave these keywords out"),
        ('{"type": "array", "uniqueItems": true}', "uniqueItems"),
        ('{"type": "string", "format": "zork"}', "zork"),
        ('{"type": "string", "pattern": "(["}', "unclosed character class"),
        ('{"type": "string", "pattern": "a(?=b)"}', "without look-ahead"),
        ('{"type": "integer", "minimum": 5, "maximum": 3}', "some text can match"),
        ('{"oneOf": [{"type": "integer"}, {"type": "number"}]}', "use anyOf"),
        ("{", "not JSON"),
        ("[]", "an object"),
        ("false", "an object"),
        ('{"const": NaN, "a": 1e99999, "b": "\\ud800"}', "cannot be used"),
        (deep(200), "60 levels"),
        ('{"a":' * 9_000 + "1" + "}" * 9_000, "nested too deeply|levels"),
        (doubling(18, "anyOf"), "make it smaller"),
        (json.dumps({"properties": {f"p{i}": {} for i in range(2_500)}}), "make it smaller"),
        (json.dumps({"enum": [f"value {i}" for i in range(9_000)]}), f"the limit is {MAX_GRAMMAR_CHARS}"),
        (json.dumps({"allOf": [{"type": "string", "pattern": f"{i}"} for i in range(40)]}), "fewer or simpler"),
    ],
)
def test_a_hostile_schema_is_refused_with_the_remedy(grammars: Grammars, text: str, message: str) -> None:
    for _ in range(2):  # the second time from what is kept
        with pytest.raises(ConstraintRefused, match=message) as caught:
            grammars.compile(Grammar("json_schema", text))
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("regex", "([", "the regular expression cannot be used: .*unclosed"),
        ("regex", "(.{1,1000}){1,1000}", "too many expressions"),
        ("lark", "", "Empty grammar"),
        ("lark", "start: foo", 'unknown name: "foo"'),
        ("lark", "start: <|no_such_token|>", "unknown special token"),
        ("choice", "[]", "none of them empty"),
        ("choice", '["a", ""]', "none of them empty"),
        ("choice", '["a", 1]', "none of them empty"),
        ("choice", '{"a": 1}', "a list of texts"),
        ("choice", '["\\ud800"]', "surrogates"),
    ],
)
def test_a_wrong_grammar_is_refused_with_the_remedy(grammars: Grammars, kind: Any, text: str, message: str) -> None:
    with pytest.raises(ConstraintRefused, match=message):
        grammars.compile(Grammar(kind, text))


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar("json_schema", deep(50)),
        schema({"enum": [f"value {i}" for i in range(3_000)]}),
        schema({"type": "array", "items": {"type": "string"}, "minItems": 10**8}),
        schema({"type": "string", "minLength": 10**6, "maxLength": 10**8}),
        schema({"type": "string", "pattern": "(x+x+)+y"}),
        schema({"properties": {f"p{i}": {"type": "string"} for i in range(300)}}),
        Grammar("regex", "(((a{1,100}){1,100}){1,100}){1,100}"),
        Grammar("regex", "(.*a.*){40}"),
        Grammar("lark", 'start: s\ns: s s | "a" | '),
    ],
    ids=lambda grammar: grammar.text[:30],
)
def test_a_hostile_grammar_that_fits_the_limits_costs_little(
    writer: Writer, grammars: Grammars, grammar: Grammar
) -> None:
    """In items and states, not in time: what is allowed is found, or the limits end it."""
    constraint = grammars.constraint(grammar)
    writer.write(constraint, seed=1, limit=25)


def test_a_grammar_that_grows_too_complex_fails_its_text_and_no_other(writer: Writer, grammars: Grammars) -> None:
    grammar = Grammar("regex", ".*a.{300}b")  # its lexer has a state for every set of places where an `a` was
    for _ in range(2):  # the second text does not begin where the first one's lexer ended
        constraint = grammars.constraint(grammar)
        assert writer.write(constraint, seed=1, limit=5) is None
        with pytest.raises(ConstraintRefused, match="too complex to go on"):
            writer.write(constraint, seed=1, limit=2_000)
        assert not grammars.is_ready(grammar)
    assert grammars.constraint(Grammar("regex", "ab")).mask().any()


def test_what_the_vocabulary_cannot_write_fails_its_text(writer: Writer, grammars: Grammars) -> None:
    with pytest.raises(ConstraintRefused, match="this model's tokens cannot write"):
        writer.write(grammars.constraint(schema({"enum": ["\U00040000"]})), seed=1)


def test_the_latest_grammars_are_kept(tokenizer: Tokenizer) -> None:
    grammars = tokenizer.grammars()
    made = [Grammar("regex", f"a{i}") for i in range(KEPT_GRAMMARS)]
    for grammar in made:
        grammars.compile(grammar)
    grammars.compile(made[0])  # used again, so it is not the oldest
    grammars.compile(Grammar("regex", "one more"))
    assert grammars.is_ready(made[0])
    assert not grammars.is_ready(made[1])
    assert not grammars.is_ready(Grammar("choice", "a2"))  # the kind counts
