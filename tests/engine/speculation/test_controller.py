"""The controller: the best lengths there are, and never a length that is expected to lose."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.speculation.controller import (
    LEAST_GAIN,
    REFRESH,
    Option,
    Prices,
    best_lengths,
    choose_lengths,
)
from engine.speculation.costs import FORGET_PLAINS, SEEN, StepCosts

rates = st.floats(0.01, 0.99)
options = st.lists(st.builds(Option, rates, st.integers(0, 16)), max_size=8)


def costs_of(plain: float, row: float, depth: float, sequences: int) -> StepCosts:
    costs = StepCosts()
    costs.saw_plain(sequences, plain)
    for _ in range(SEEN):
        costs.saw_drafts(sequences, 4, plain + 4 * row)
        costs.saw_drafting(sequences, 4, 4 * depth)
    costs.saw_plain(sequences, plain)
    return costs


@settings(deadline=None)
@given(
    st.lists(st.builds(Option, rates, st.integers(0, 3)), min_size=1, max_size=3),
    st.floats(0.001, 0.5),
    st.floats(0.0, 0.5),
)
def test_no_other_lengths_are_faster(options: list[Option], row: float, depth: float) -> None:
    prices, sequences = Prices(1.0, row, depth), len(options) + 1
    speeds = [
        prices.speed(sequences, options, lengths) for lengths in product(*(range(o.longest + 1) for o in options))
    ]
    chosen = best_lengths(options, sequences, prices)
    assert prices.speed(sequences, options, chosen) == pytest.approx(max(speeds), rel=1e-6)


@settings(deadline=None)
@given(options, st.integers(0, 40), st.floats(1e-4, 1.0), st.floats(-0.1, 1.5), st.floats(0.0, 1.5))
def test_what_is_chosen_gains(options: list[Option], others: int, plain: float, row: float, depth: float) -> None:
    """By what was measured, the step makes more tokens per second than a plain one. row, depth: shares of plain; by
    a noisy clock a row may cost less than nothing."""
    sequences = len(options) + others
    if not sequences:
        return
    lengths = choose_lengths(options, sequences, costs_of(plain, row * plain, depth * plain, sequences))
    assert all(0 <= length <= option.longest for length, option in zip(lengths, options, strict=True))
    if any(lengths):
        speed = Prices(plain, max(row, 0.0) * plain, depth * plain).speed(sequences, options, lengths)
        assert speed >= LEAST_GAIN * sequences / plain * (1 - 1e-9)


def test_a_free_row_is_worth_a_doubtful_draft_and_a_dear_one_is_not() -> None:
    doubtful = [Option(0.3, 16)]
    assert choose_lengths(doubtful, 1, costs_of(1.0, 0.02, 0.0, 1))[0] > 1
    assert choose_lengths(doubtful, 1, costs_of(1.0, 0.6, 0.0, 1)) == [0]
    assert choose_lengths([Option(0.98, 16)], 1, costs_of(1.0, 0.05, 0.0, 1)) == [16]


def test_a_draft_model_as_slow_as_the_target_is_never_asked() -> None:
    assert choose_lengths([Option(0.99, 16)] * 4, 4, costs_of(1.0, 0.01, 1.0, 4)) == [0] * 4


def test_nothing_is_drafted_before_a_plain_step_was_measured() -> None:
    assert choose_lengths([Option(0.99, 16)], 1, StepCosts()) == [0]


def test_the_first_tries_are_few_rows() -> None:
    costs = StepCosts()
    costs.saw_plain(32, 1.0)
    assert 0 < sum(choose_lengths([Option(0.9, 16)] * 32, 32, costs)) <= 16


def test_plain_steps_are_measured_again() -> None:
    costs = costs_of(1.0, 0.01, 0.0, 1)
    chosen = 0
    while any(choose_lengths([Option(0.9, 8)], 1, costs)):
        costs.saw_drafts(1, 8, 1.1)
        chosen += 1
    assert chosen == REFRESH
    costs.saw_plain(1, 1.0)
    assert any(choose_lengths([Option(0.9, 8)], 1, costs))


def test_a_row_that_was_dear_once_is_tried_again_in_time() -> None:
    costs, option = costs_of(1.0, 5.0, 0.0, 1), [Option(0.9, 8)]
    steps = 0
    while not any(choose_lengths(option, 1, costs)):
        costs.saw_plain(1, 1.0)
        steps += 1
        assert steps <= SEEN * FORGET_PLAINS
    assert steps > FORGET_PLAINS


def test_rows_that_come_by_the_tile_are_paid_by_the_tile() -> None:
    """Many rows were cheap apiece; a few cost a whole tile, and that was seen."""
    costs, few = StepCosts(), [Option(0.6, 1)] * 3
    costs.saw_plain(8, 1.0)
    for _ in range(SEEN):
        costs.saw_drafts(8, 3, 1.27)
    for _ in range(SEEN):
        costs.saw_drafts(8, 32, 1.4)
    costs.saw_plain(8, 1.0)
    assert choose_lengths(few, 8, costs) == [0] * 3
    assert sum(choose_lengths([Option(0.9, 16)] * 8, 8, costs)) > 30
