"""The engine's look at many numbers: one that is not finite, or not zero, is found wherever it is."""

import pytest
import torch

from engine.adapters.scan import DTYPES, scan_values

COUNT = 100_000
PLACES = [0, 32_767, 32_768, 65_536, COUNT - 1]


def scanned(numbers: torch.Tensor, name: str) -> tuple[bool, bool]:
    return scan_values(bytearray(numbers.view(torch.uint8).numpy().tobytes()), name)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("at", PLACES)
def test_one_number_among_many_zeros(name: str, at: int) -> None:
    kind = torch.finfo(DTYPES[name])
    for value, is_finite in (
        (float("nan"), False),
        (float("inf"), False),
        (float("-inf"), False),
        (kind.max, True),
        (kind.min, True),
        (-kind.smallest_normal, True),
    ):
        numbers = torch.zeros(COUNT, dtype=DTYPES[name])
        numbers[at] = value
        assert scanned(numbers, name) == (is_finite, False), value


@pytest.mark.parametrize("name", DTYPES)
def test_nothing_but_zeros_of_either_sign(name: str) -> None:
    assert scanned(-torch.zeros(COUNT, dtype=DTYPES[name]), name) == (True, True)
    assert scan_values(b"", name) == (True, True)
