"""Prompt lookup says what a scan of the whole text says."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.protocol import Sampling
from engine.scheduling.sequence import Sequence
from engine.speculation.lookup import FULL_MATCH, PLACES, Lookup
from engine.speculation.proposer import MAX_DRAFT, Ask


def sequence_of(tokens: list[int]) -> Sequence:
    return Sequence("r", "t", b"", None, Sampling(max_tokens=9), tokens, len(tokens), max_len=10_000)


def scanned(tokens: list[int]) -> tuple[int, list[int]]:
    """(tokens that agree, what followed): every earlier place compared, token by token."""
    ends = [end for end in range(1, len(tokens) - 1) if tokens[end - 1 : end + 1] == tokens[-2:]]
    best, most = -1, 0
    for end in sorted(ends, reverse=True)[:PLACES]:
        agreed = max(
            n for n in range(FULL_MATCH + 1) if n <= end + 1 and tokens[end + 1 - n : end + 1] == tokens[-n:][:n]
        )
        if agreed > most:
            best, most = end, agreed
    if most < 2:
        return most, []
    text = [*tokens]
    for i in range(MAX_DRAFT):
        text.append(text[best + 1 + i])
    return most, text[len(tokens) :]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=80), st.integers(1, 80))
@example([1] * 60, 1)
@example([1, 2, 3] * 20, 7)
def test_lookup_is_a_scan_however_the_text_grew(tokens: list[int], piece: int) -> None:
    lookup, sequence = Lookup(), sequence_of([])
    for start in range(0, len(tokens), piece):
        sequence.tokens += tokens[start : start + piece]
        outlook = lookup.outlook(sequence)
        agreed, followed = scanned(sequence.tokens)
        assert list(outlook.known) == followed
        assert outlook.longest == len(followed)
        if followed:
            assert outlook.kind == agreed.bit_length()
            assert lookup.propose([Ask(sequence, 0, 3)]) == [tuple(followed[:3])]


def test_sequences_do_not_see_each_other_and_are_forgotten() -> None:
    lookup = Lookup()
    first, second = sequence_of([5, 6, 7, 8, 5, 6]), sequence_of([5, 6])
    assert lookup.outlook(first).known[:2] == (7, 8)
    assert lookup.outlook(second).longest == 0
    lookup.forget(first)
    lookup.forget(first)
    assert lookup._indexes.keys() == {second}
