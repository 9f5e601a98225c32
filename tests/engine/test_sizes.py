import pytest

from engine.sizes import parse_bytes, shown_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("4096", 4096), ("512B", 512), ("80GB", 80 * 10**9), ("80 gib", 80 * 2**30), ("1.5KiB", 1536)],
)
def test_amounts_as_people_write_them(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1", "1 XB", "1e9", "0x10"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no amount of memory"):
        parse_bytes(text)


@pytest.mark.parametrize(("count", "text"), [(10, "10 B"), (320 * 1024, "320 KiB"), (80e9, "74.51 GiB")])
def test_shown_in_the_largest_unit(count: float, text: str) -> None:
    assert shown_bytes(count) == text
