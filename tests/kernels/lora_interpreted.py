"""Run by test_lora_triton.py with TRITON_INTERPRET=1: the Triton pair against the specification, case by case."""

import random

import torch

from kernels import lora, reference
from kernels.adapter_table import AdapterTable
from kernels.lora_tiles import MOST_ROWS, LoraTiles
from kernels.segments import Segments

RANKS = (1, 3, 8, 17, 33)
TILES = (LoraTiles(16, 64, 32, 1, 4, 3), LoraTiles(32, 32, 128, 4, 4, 3))
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


def check(dtype: torch.dtype, tiles: LoraTiles) -> None:
    adapters = random_adapters(dtype)
    slots, lengths = [1, None, 2, 0, 3, 1, 4], [1, 3, 20, 2, 1, 4, 70]
    per_token = [slot for slot, length in zip(slots, lengths, strict=True) for _ in range(length)]
    x, y = torch.randn(len(per_token), INSIDE).to(dtype), torch.randn(len(per_token), sum(OUTS)).to(dtype)
    expected = (y.float() + reference.lora_delta(x, per_token, adapters, list(OUTS))).to(dtype)
    table = table_of(adapters, dtype, [0, 1, 2, 3, 4])
    ours, segments = y.clone(), Segments.build(slots, lengths, chunk=MOST_ROWS)
    lora.add_lora(ours, x, table, segments, tiles, upcast=True)
    # The interpreter truncates float32 to bf16 where a GPU rounds: a whole step of 2^-8 instead of half.
    tolerance = {"atol": 1e-3, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.1, "rtol": 2**-7}
    torch.testing.assert_close(ours, expected, **tolerance)
    base = [row for row, slot in enumerate(per_token) if slot in (None, 0)]
    assert torch.equal(ours[base], y[base])
    number = [3, 0, 4, 1, 2]
    renumbered = y.clone()
    other = table_of(adapters, dtype, number)
    moved = [None if slot is None else number[slot] for slot in slots]
    lora.add_lora(renumbered, x, other, Segments.build(moved, lengths, chunk=MOST_ROWS), tiles, upcast=True)
    assert torch.equal(renumbered, ours)
    for row in (0, 5, len(per_token) - 1):
        alone = y[row : row + 1].clone()
        one = Segments.build([per_token[row]], [1], chunk=MOST_ROWS)
        lora.add_lora(alone, x[row : row + 1].clone(), table, one, tiles, upcast=True)
        torch.testing.assert_close(alone[0], ours[row], **tolerance)
    padded = y.clone()
    lora.add_lora(padded, x, table, with_empty_chunks(segments, 3), tiles, largest_rank=64, upcast=True)
    assert torch.equal(padded, ours)


def with_empty_chunks(segments: Segments, count: int) -> Segments:
    """As a captured graph has them."""
    columns = [torch.cat([x, torch.zeros(count, dtype=torch.int32)]) for x in
               (segments.slots, segments.starts, segments.lengths)]  # fmt: skip
    return Segments(segments.order, *columns, segments.longest)


def check_company() -> None:
    """With the same rows of a chunk, a token alone has the bits that it has among others."""
    table = AdapterTable(2, INSIDE, OUTS, torch.float32, "cpu")
    for slot in range(2):
        for piece, out in enumerate(OUTS):
            table.write(slot, piece, torch.randn(9, INSIDE), torch.randn(out, 9), 0.5)
    x, y, slots = torch.randn(20, INSIDE), torch.randn(20, sum(OUTS)), [row % 2 for row in range(20)]
    ours = y.clone()
    lora.add_lora(ours, x, table, Segments.build(slots, [1] * 20, chunk=16), TILES[1])
    for row in (0, 7, 19):
        alone = y[row : row + 1].clone()
        one = Segments.build([slots[row]], [1], chunk=16)
        lora.add_lora(alone, x[row : row + 1].clone(), table, one, TILES[1])
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
    lora.add_lora(ours, x, table, Segments.build(per_token, [1] * 6, chunk=MOST_ROWS), TILES[0], upcast=True)
    tolerance = {"atol": 1e-4, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.1, "rtol": 2**-7}
    torch.testing.assert_close(ours, expected.to(dtype), **tolerance)
    assert torch.equal(ours[5], y[5])


def check_many(dtype: torch.dtype, tiles: LoraTiles) -> None:
    """64 adapters of all ranks up to 128 in one launch, in another order too."""
    outs, adapters = OUTS[:1], dict[int, list]()
    for slot in range(64):
        rank = (1, 3, 8, 17, 64, 128)[slot % 6]
        a, b = torch.randn(rank, INSIDE) / INSIDE**0.5, torch.randn(outs[0], rank) / rank**0.5
        adapters[slot] = [(a.to(dtype), b.to(dtype), 1.0)]
    number = random.Random(3).sample(range(64), 64)
    tables = []
    for numbers in ([*range(64)], number):
        table = AdapterTable(64, INSIDE, outs, dtype, "cpu")
        for slot, [entry] in adapters.items():
            table.write(numbers[slot], 0, *entry)
        tables.append((table, numbers))
    per_token = [row % 64 for row in range(70)]
    x, y = torch.randn(70, INSIDE).to(dtype), torch.randn(70, outs[0]).to(dtype)
    expected = (y.float() + reference.lora_delta(x, per_token, adapters, list(outs))).to(dtype)
    found = []
    for table, numbers in tables:
        ours, segments = y.clone(), Segments.build([numbers[slot] for slot in per_token], [1] * 70, chunk=MOST_ROWS)
        lora.add_lora(ours, x, table, segments, tiles, upcast=True)
        found.append(ours)
    tolerance = {"atol": 1e-3, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.1, "rtol": 2**-7}
    torch.testing.assert_close(found[0], expected, **tolerance)
    assert torch.equal(found[0], found[1])


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that was never written reads as NaN
for kind in (torch.float32, torch.bfloat16):
    for shape in TILES:
        check(kind, shape)
    check_columns(kind)
    check_many(kind, TILES[0])
check_company()
