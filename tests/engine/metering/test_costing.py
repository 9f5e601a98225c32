from hypothesis import given
from hypothesis import strategies as st

from engine.metering.costing import LINEAR_EQUIVALENT, prefill_part, run_weight, split_step


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**9), min_size=1, max_size=64))
def test_shares_are_proportional_and_sum_to_the_step(step_ns: int, weights: list[int]) -> None:
    shares = split_step(step_ns, weights)
    assert sum(shares) == step_ns
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share * sum(weights) - step_ns * weight) < sum(weights)


@given(st.integers(0, 5000), st.integers(1, 600))
def test_a_chunk_weighs_what_its_tokens_weigh_one_by_one(start: int, length: int) -> None:
    assert run_weight(start, length) == sum(LINEAR_EQUIVALENT + i + 1 for i in range(start, start + length))


@given(st.integers(0, 10**12), st.integers(0, 3000), st.integers(1, 600), st.integers(1, 3000))
def test_a_share_is_the_prompts_and_the_answers(share: int, start: int, length: int, prompt_len: int) -> None:
    """In proportion to what their tokens weigh: all of it before the prompt's end, nothing of it after."""
    part = prefill_part(share, start, length, prompt_len)
    of_prompt = sum(LINEAR_EQUIVALENT + i + 1 for i in range(start, start + length) if i < prompt_len)
    whole = sum(LINEAR_EQUIVALENT + i + 1 for i in range(start, start + length))
    assert part == share * of_prompt // whole
