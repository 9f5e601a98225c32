"""Patterns match what PEFT's `get_pattern_key` matches, and no pattern takes long."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peft.utils.other import get_pattern_key

from engine.adapters.base_shape import MODULES, module_path
from engine.adapters.patterns import PatternError, Patterns

NAMES = [module_path(layer, module) for layer in (0, 1, 3, 11, 27) for module in MODULES]

atoms = st.sampled_from(
    ["q", "_proj", "self_attn", r"\.", ".", r"\d", "[qkv]", "[^q]", "layers", "1", r"\w", r"\b", "^", "$", "[a-f_]",
     r"[\d_]", "mlp", "down", r"\S", r"\D", "model", "_"]
)  # fmt: skip


def grown(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{0,2}?", "{2,}"])
    return st.one_of(
        st.lists(children, min_size=1, max_size=4).map("".join),
        st.tuples(children, children).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(children, repeats).map(lambda two: f"(?:{two[0]}){two[1]}"),
        children.map(lambda one: f"(?={one})"),
        children.map(lambda one: f"(?!{one})"),
        st.tuples(children, children).map("|".join),
    )


patterns = st.recursive(atoms, grown, max_leaves=8)


@settings(max_examples=400, deadline=None)
@given(st.lists(patterns, min_size=1, max_size=3), st.sampled_from(NAMES))
def test_the_first_key_is_the_one_peft_takes(keys: list[str], name: str) -> None:
    try:
        theirs = get_pattern_key(keys, name)
    except re.error:
        with pytest.raises(PatternError):
            Patterns(keys)
        return
    assert (Patterns(keys).first(name) or name) == theirs


@pytest.mark.parametrize(
    "key", ["q_proj", "self_attn.q_proj", "1.self_attn.q_proj", r"layers\.\d\.mlp\.up_proj", "proj"]
)
@pytest.mark.parametrize("name", NAMES)
def test_plain_keys(key: str, name: str) -> None:
    assert (Patterns([key]).first(name) or name) == get_pattern_key([key], name)


@pytest.mark.parametrize(
    "key",
    [
        r"(([a-z_.0-9])+)+X",
        r"(\w|\w\w|\w)*!",
        r"(.*)*(.*)*(.*)*(.*)*(.*)*X",
        r"(a?){500}(\w?){500}X",
        r"((((\w*)*)*)*)*!",
        "(?:.|.)" * 120 + "X",
        r"(\w{1,30}){1,30}!",
        r"(?=(\w+)+!)q",
    ],
)
def test_no_pattern_backtracks_for_ever(key: str) -> None:
    patterns = Patterns([key])
    try:
        found = [patterns.first(name) for name in NAMES]
    except PatternError:
        return
    assert found == [None] * len(NAMES)


@pytest.mark.parametrize(
    "key",
    [r"(q)\1", "(?P<a>q)(?P=a)", "(?i:q)", "(?<=q)_proj", "(?(1)a|b)", "(?>q)", "q*+", "(", "[", "x" * 1001, "(" * 900],
)
def test_what_is_not_evaluated_is_said_at_once(key: str) -> None:
    with pytest.raises(PatternError):
        Patterns([key])
