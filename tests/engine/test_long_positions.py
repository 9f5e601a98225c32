"""Models whose positions depend on how far a sequence may grow (LongRoPE): the two kinds share no pages."""

from pathlib import Path

from engine.protocol import Generate, TokenEvent
from tests.engine.toy import Toy, greedy, toy_engine

PROMPT = tuple(range(1, 14))


def cached_tokens(toy: Toy, name: str, max_tokens: int) -> int:
    toy.engine.add(Generate(name, "acme", "salt", PROMPT, greedy(max_tokens)))
    while not toy.engine.is_idle:
        for event in toy.engine.step():
            if isinstance(event, TokenEvent) and event.usage is not None:
                return event.usage.cached_tokens
    raise AssertionError("no usage")


def test_a_prompt_is_shared_among_those_that_may_grow_long_and_among_those_that_may_not(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, switch_len=16)
    assert cached_tokens(toy, "short", 3) == 0  # 13 + 3 = 16 tokens at most
    assert cached_tokens(toy, "long", 4) == 0
    shared = 12 // toy.config.page_size * toy.config.page_size
    assert shared > 0
    assert cached_tokens(toy, "short-again", 2) == shared
    assert cached_tokens(toy, "long-again", 9) == shared
    toy.engine.check_integrity()


def test_other_models_share_them_whatever_the_length(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path)
    cached_tokens(toy, "short", 3)
    assert cached_tokens(toy, "long", 9) == 12 // toy.config.page_size * toy.config.page_size
