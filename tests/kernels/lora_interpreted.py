"""Run by test_lora_triton.py with TRITON_INTERPRET=1: the Triton pair against the specification, case by case."""

import random

import torch

from kernels import lora, reference
from kernels.adapter_table import AdapterTable
from kernels.segments import Segments

RANKS = (1, 3, 8, 17, 33)
OUTS = (37, 16, 70)
INSIDE = 100


def table_of(adapters: dict[int, list], dtype: torch.dtype, number: list[int]) -> AdapterTable:
    table = AdapterTable(len(adapters), INSIDE, OUTS, dtype, "cpu")
    for slot, pieces in adapters.items():
        for piece, entry in enumerate(pieces):
            if entry is not None:
                table.write(number[slot], piece, *entry)
    return table


def random_adapters(dtype: torch.dtype) -> dict[int, list]:
    """Five slots; slot 0 is empty, the others lack a slice now and then."""
    dice, adapters = random.Random(2), {0: [None] * len(OUTS)}
    for slot in range(1, 5):
        adapters[slot] = []
        for out in OUTS:
            rank = dice.choice(RANKS)
            weights = (torch.randn(rank, INSIDE).to(dtype), torch.randn(out, rank).to(dtype), dice.uniform(0.5, 2))
            adapters[slot].append(weights if dice.random() < 0.8 else None)
    return adapters


def check(dtype: torch.dtype) -> None:
    adapters = random_adapters(dtype)
    slots, lengths = [1, None, 2, 0, 3, 1, 4], [1, 3, 20, 2, 1, 4, 16]
    per_token = [slot for slot, length in zip(slots, lengths, strict=True) for _ in range(length)]
    x, y = torch.randn(len(per_token), INSIDE).to(dtype), torch.randn(len(per_token), sum(OUTS)).to(dtype)
    expected = (y.float() + reference.lora_delta(x, per_token, adapters, list(OUTS))).to(dtype)
    table = table_of(adapters, dtype, [0, 1, 2, 3, 4])
    ours = y.clone()
    lora.add_lora(ours, x, table, Segments.build(slots, lengths, chunk=lora.CHUNK), upcast=True)
    # The interpreter truncates float32 to bf16 where a GPU rounds: a whole step of 2^-8 instead of half.
    tolerance = {"atol": 1e-3, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.1, "rtol": 2**-7}
    torch.testing.assert_close(ours, expected, **tolerance)
    base = [row for row, slot in enumerate(per_token) if slot in (None, 0)]
    assert torch.equal(ours[base], y[base])
    number = [3, 0, 4, 1, 2]
    renumbered = y.clone()
    other = table_of(adapters, dtype, number)
    moved = [None if slot is None else number[slot] for slot in slots]
    lora.add_lora(renumbered, x, other, Segments.build(moved, lengths, chunk=lora.CHUNK), upcast=True)
    assert torch.equal(renumbered, ours)
    for row in (0, 5, len(per_token) - 1):
        alone = y[row : row + 1].clone()
        one = Segments.build([per_token[row]], [1], chunk=lora.CHUNK)
        lora.add_lora(alone, x[row : row + 1].clone(), table, one, upcast=True)
        assert torch.equal(alone[0], ours[row])


def check_columns(dtype: torch.dtype) -> None:
    """Slot 1 scales and shifts its first slice, scales its second and shifts its third; slot 2 has a third one only."""
    table = AdapterTable(3, INSIDE, OUTS, dtype, "cpu")
    per_token = [1] * 3 + [2] * 2 + [0]
    x, y = torch.randn(6, INSIDE).to(dtype), torch.randn(6, sum(OUTS)).to(dtype)
    expected, first = y.float().clone(), 0
    for piece, out in enumerate(OUTS):
        a, b = torch.randn(5, INSIDE).to(dtype), torch.randn(out, 5).to(dtype)
        gain = torch.randn(out) if piece < 2 else None
        shift = torch.randn(out) if piece != 1 else None
        table.write(1, piece, a, b, 0.5, gain, shift)
        columns = slice(first, first + out)
        base = expected[:3, columns] * (1.0 if gain is None else gain) + (0.0 if shift is None else shift)
        expected[:3, columns] = base + reference.expand(reference.shrink(x[:3], a), b, 0.5)
        if piece == 2:
            table.write(2, piece, a, b, -1.0)
            expected[3:5, columns] += reference.expand(reference.shrink(x[3:5], a), b, -1.0)
        first += out
    ours = y.clone()
    lora.add_lora(ours, x, table, Segments.build(per_token, [1] * 6, chunk=lora.CHUNK), upcast=True)
    tolerance = {"atol": 1e-4, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.1, "rtol": 2**-7}
    torch.testing.assert_close(ours, expected.to(dtype), **tolerance)
    assert torch.equal(ours[5], y[5])


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that was never written reads as NaN
check(torch.float32)
check(torch.bfloat16)
check_columns(torch.float32)
check_columns(torch.bfloat16)
