"""The arithmetic of a device's memory, and what is said where it does not work out."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import EngineConfig
from engine.memory_plan import MemoryPlanError, MemoryUse, arithmetic, plan_pages, slot_bytes
from engine.model_info import ModelInfo

GIB = 1 << 30
H100 = MemoryUse(
    total=80 * GIB, others=GIB, weights=15 * GIB, slots=5 * GIB, graphs=GIB, activations=2 * GIB
)  # fmt: skip


def test_pages_take_what_is_left() -> None:
    left = 80 * GIB - (1 + 15 + 5 + 1 + 2) * GIB - int(0.03 * 80 * GIB)
    assert H100.left == left
    assert plan_pages(H100, page_size=64, bytes_per_token=70_000, least_tokens=1) == left // (64 * 70_000)


def test_a_model_that_does_not_fit_is_told_by_how_much() -> None:
    tight = replace(H100, total=24 * GIB)
    with pytest.raises(MemoryPlanError) as caught:
        plan_pages(tight, page_size=64, bytes_per_token=70_000, least_tokens=8192)
    message = str(caught.value)
    for part in ("24 GiB of memory", "15 GiB weights", "5 GiB adapter slots", "1 GiB graphs", "2 GiB activations"):
        assert part in message
    for part in ("leaves 0 B", "8192 tokens", "--adapter-slots", "--max-rank", "--step-tokens"):
        assert part in message


def test_one_page_short_is_refused_and_exactly_enough_is_not() -> None:
    use = MemoryUse(total=10_000, others=0, weights=0, slots=0, graphs=0, activations=0)
    assert plan_pages(use, page_size=4, bytes_per_token=100, least_tokens=24 * 4) == 24  # 9,700 bytes of 400 each
    with pytest.raises(MemoryPlanError, match=r"97 tokens of 100 B"):
        plan_pages(use, page_size=4, bytes_per_token=100, least_tokens=97)


def test_what_takes_nothing_is_not_listed() -> None:
    assert "graphs" not in arithmetic(replace(H100, graphs=0))


@given(st.integers(0, 40), st.integers(1, 256), st.integers(1, 200_000))
def test_pages_never_exceed_what_is_left(weights: int, page_size: int, per_token: int) -> None:
    use = replace(H100, weights=weights * GIB)
    pages = plan_pages(use, page_size=page_size, bytes_per_token=per_token, least_tokens=0)
    assert pages * page_size * per_token <= use.left < (pages + 1) * page_size * per_token


def test_a_slot_is_both_sides_of_every_linear() -> None:
    info = ModelInfo("m", 10, 8, 2, 4, 1, 1, 4, {"q": (4, 6), "o": (6, 4)})
    assert slot_bytes(info, 8, 2) == 2 * 8 * (4 + 6 + 6 + 4) * 2


def test_only_a_cuda_device_may_size_its_own_pool() -> None:
    assert EngineConfig(model=Path(), home=Path(), url="", device="cuda", kv_pool_tokens=0).pages == 0
    with pytest.raises(ValueError, match="kv_pool_tokens is 0: it must be at least 1"):
        EngineConfig(model=Path(), home=Path(), url="", device="cpu", kv_pool_tokens=0)
    with pytest.raises(ValueError, match="draft model, whose pages need room too"):
        EngineConfig(
            model=Path(), home=Path(), url="", device="cuda", kv_pool_tokens=0, speculate="draft", draft_model=Path()
        )
