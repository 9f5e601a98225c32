import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.segments import Segments

runs = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.integers(1, 40)), max_size=12)


def rows_by_slot(segments: Segments) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for slot, start, length in zip(
        segments.slots.tolist(), segments.starts.tolist(), segments.lengths.tolist(), strict=True
    ):
        rows.setdefault(slot, []).extend(segments.order[start : start + length].tolist())
    return rows


@given(runs, st.integers(1, 20))
def test_every_adapted_token_is_in_one_chunk_of_its_slot_and_base_tokens_in_none(
    pairs: list[tuple[int | None, int]], chunk: int
) -> None:
    segments = Segments.build([slot for slot, _ in pairs], [length for _, length in pairs], chunk=chunk)
    per_token = [slot for slot, length in pairs for _ in range(length)]
    expected: dict[int, list[int]] = {}
    for row, slot in enumerate(per_token):
        if slot is not None:
            expected.setdefault(slot, []).append(row)
    assert rows_by_slot(segments) == expected
    assert segments.longest == max(segments.lengths.tolist(), default=0) <= chunk
    assert all(length > 0 for length in segments.lengths.tolist())


def test_a_slot_in_several_runs_is_one_group() -> None:
    segments = Segments.build([3, None, 3], [2, 4, 1], chunk=16)
    assert segments.order.tolist() == [0, 1, 6]
    assert (segments.slots.tolist(), segments.starts.tolist(), segments.lengths.tolist()) == ([3], [0], [3])


def test_a_batch_of_the_base_model_has_no_chunk() -> None:
    segments = Segments.build([None, None], [5, 1], chunk=16)
    assert segments.chunks == 0
    assert segments.order.dtype == segments.slots.dtype == torch.int32
