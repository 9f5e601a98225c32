from hypothesis import given
from hypothesis import strategies as st

from engine.decoding.text_stream import REPLACEMENT, TextStream


def decode(ids: list[int]) -> str:
    """One token, one byte."""
    return bytes(ids).decode("utf-8", errors="replace")


def streamed(data: bytes, stop: tuple[str, ...] = ()) -> list[str]:
    stream, pieces = TextStream(decode, stop), list[str]()
    for byte in data:
        pieces.append(stream.push(byte))
        if stream.is_stopped:
            return pieces
    return [*pieces, stream.finish()]


def cut(text: str, stop: tuple[str, ...]) -> str:
    """The specification: the text before the earliest end of any stop string, as tokens reveal it one by one."""
    for size in range(len(text) + 1):
        found = [index for index in (text[:size].find(s) for s in stop) if index >= 0]
        if found:
            return text[: min(found)]
    return text


@given(st.text(max_size=30))
def test_pieces_make_the_text_and_no_character_is_ever_half(text: str) -> None:
    pieces = streamed(text.encode("utf-8", errors="ignore"))
    assert "".join(pieces) == text.rstrip(REPLACEMENT)
    assert REPLACEMENT in text or not any(REPLACEMENT in piece for piece in pieces)


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_stop_strings_never_show_not_even_in_part(text: str, stop: list[str]) -> None:
    pieces = streamed(text.encode(), tuple(stop))
    expected = cut(text, tuple(stop))
    assert "".join(pieces) == expected
    so_far = ""
    for piece in pieces:
        so_far += piece
        assert expected.startswith(so_far), "something was said that had to be taken back"


@given(st.binary(max_size=40))
def test_any_bytes_come_through_as_a_whole_decode_would_show_them(data: bytes) -> None:
    assert "".join(streamed(data)).rstrip(REPLACEMENT) == decode(list(data)).rstrip(REPLACEMENT)


def test_half_a_character_at_the_end_is_left_out() -> None:
    assert "".join(streamed("né".encode()[:-1])) == "n"


def test_invalid_bytes_do_not_hold_the_text_back_for_ever() -> None:
    pieces = streamed(b"\xff" * 40)
    assert "".join(pieces[:-1]).count(REPLACEMENT) >= 20


def test_a_stop_string_of_many_characters_is_found_over_many_tokens() -> None:
    assert streamed("x日本y".encode(), ("日本",)) == ["x", "", "", "", "", "", ""]


def test_a_stop_string_that_the_end_of_the_text_completes() -> None:
    stream = TextStream(lambda ids: "".join({1: "ab\ufffd", 2: "c"}[token] for token in ids), ("ab",))
    assert stream.push(1) == ""
    assert stream.finish() == ""
    assert stream.is_stopped


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_stop_string_may_be_part_of_the_text(text: str, stop: list[str]) -> None:
    stream, pieces = TextStream(decode, stop, include_stop=True), list[str]()
    for byte in text.encode():
        pieces.append(stream.push(byte))
        if stream.is_stopped:
            break
    told, without = "".join([*pieces, stream.finish()]), cut(text, tuple(stop))
    assert told == without + (stream.stopped_by or "")
    assert (stream.stopped_by in stop) == (without != text or any(each in text for each in stop))


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers(0, 12))
def test_what_begins_before_the_text_may_stop_is_text(text: str, stop: str, free: int) -> None:
    stream = TextStream(decode, (stop,))
    told = ""
    for place, byte in enumerate(text.encode()):
        told += stream.push(byte, may_stop=place >= free)
        if stream.is_stopped:
            break
    told += stream.finish()
    assert told == text[:free] + cut(text[free:], (stop,))


@given(st.text(max_size=10), st.text(max_size=10), st.text(max_size=10))
def test_a_copy_goes_on_alone(before: str, ours: str, theirs: str) -> None:
    stream = TextStream(decode, ("ab", "\u00e9"))
    said = "".join(stream.push(byte) for byte in before.encode(errors="ignore") if not stream.is_stopped)
    other = stream.copy()
    for each, more in ((other, theirs), (stream, ours)):
        told = said + "".join(each.push(b) for b in more.encode(errors="ignore") if not each.is_stopped) + each.finish()
        alone = "".join(streamed((before + more).encode(errors="ignore"), ("ab", "\u00e9")))
        assert told == alone
