"""Byte ranges against the plainest model there is: the set of bytes they stand for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.ranges import Range, missing_ranges, pieces, total, with_range

SIZE = 40
parts = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(lambda p: Range(p[0], min(SIZE, p[0] + p[1])))


def bytes_of(ranges: list[Range]) -> set[int]:
    return {at for r in ranges for at in range(r.start, r.end)}


def union(added: list[Range]) -> list[Range]:
    ranges: list[Range] = []
    for part in added:
        ranges = with_range(ranges, part)
    return ranges


@given(st.lists(parts, max_size=12))
def test_a_union_is_that_of_its_bytes_in_fewest_sorted_ranges(added: list[Range]) -> None:
    ranges = union(added)
    assert bytes_of(ranges) == bytes_of(added)
    assert all(left.end < right.start for left, right in pairwise(ranges))
    assert total(ranges) == len(bytes_of(added))


@given(st.lists(parts, max_size=12))
def test_what_is_missing_is_the_rest(added: list[Range]) -> None:
    missing = missing_ranges(union(added), SIZE)
    assert bytes_of(missing) == set(range(SIZE)) - bytes_of(added)
    assert union(missing) == missing


@given(st.lists(parts, max_size=12), parts)
def test_pieces_cover_a_part_once_in_order_and_know_what_is_known(added: list[Range], part: Range) -> None:
    ranges = union(added)
    found = list(pieces(ranges, part.start, part.end))
    assert [at for p in found for at in range(p.start, p.end)] == list(range(part.start, part.end))
    known = {at for p in found if p.is_known for at in range(p.start, p.end)}
    assert known == bytes_of(ranges) & set(range(part.start, part.end))
