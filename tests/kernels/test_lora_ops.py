"""The LoRA update of both back ends against the specification: odd ranks, empty slots, any company."""

import random

import pytest
import torch

from kernels import reference
from kernels.adapter_table import AdapterTable
from kernels.segments import Segments

RANKS = (1, 3, 8, 17, 64)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])


def random_table(inside: int, outs: tuple[int, ...], slots: int, dtype: torch.dtype):
    """Every slot has another set of slices and ranks; slot 0 has none at all."""
    table, adapters, dice = AdapterTable(slots, inside, outs, dtype, "cpu"), {}, random.Random(1)
    for slot in range(slots):
        adapters[slot] = [None] * len(outs)
        for piece, out in enumerate(outs):
            if slot and dice.random() < 0.8:
                rank, scaling = dice.choice(RANKS), dice.uniform(0.25, 4.0)
                a, b = torch.randn(rank, inside).to(dtype), torch.randn(out, rank).to(dtype)
                table.write(slot, piece, a, b, scaling)
                adapters[slot][piece] = (a, b, scaling)
    return table, adapters


@DTYPES
@pytest.mark.parametrize("inside,outs", [(64, (48, 16, 16)), (100, (37,)), (33, (7, 90))])
@pytest.mark.parametrize(
    "slots,lengths", [([1, None, 2, 1, 0], [1, 3, 1, 1, 1]), ([3, 4, None], [37, 5, 8]), ([None], [4]), ([5], [1])]
)
def test_matches_the_specification(ops, dtype, inside, outs, slots, lengths) -> None:
    table, adapters = random_table(inside, outs, 6, dtype)
    x, y = torch.randn(sum(lengths), inside).to(dtype), torch.randn(sum(lengths), sum(outs)).to(dtype)
    per_token = [slot for slot, length in zip(slots, lengths, strict=True) for _ in range(length)]
    expected = (y.float() + reference.lora_delta(x, per_token, adapters, list(outs))).to(dtype)
    untouched = y.clone()
    ops.add_lora(y, x, table, Segments.build(slots, lengths, chunk=ops.chunk))
    torch.testing.assert_close(y, expected, atol=2e-3 if dtype == torch.float32 else 0.1, rtol=2**-7)
    for row, slot in enumerate(per_token):
        if slot is None or slot == 0:
            assert torch.equal(y[row], untouched[row])


@DTYPES
@pytest.mark.parametrize("outs", [(48, 16, 16), (37,), (7, 90)])
def test_the_base_output_is_scaled_and_shifted_first(ops, dtype, outs) -> None:
    """Per slice: both, one of them, or neither; rows of other slots and of the base model keep theirs."""
    inside, slots, lengths = 33, [1, None, 2, 3, 1], [5, 2, 1, 1, 1]
    table = AdapterTable(4, inside, outs, dtype, "cpu")
    x, y = torch.randn(10, inside).to(dtype), torch.randn(10, sum(outs)).to(dtype)
    expected, per_token = y.float().clone(), torch.tensor([1] * 5 + [0] * 2 + [2, 3, 1])
    for slot, (has_gain, has_shift) in {1: (True, True), 2: (True, False), 3: (False, True)}.items():
        rows, first = per_token == slot, 0
        for piece, out in enumerate(outs):
            gain, shift = (torch.randn(out) if has else None for has in (has_gain, has_shift))
            if piece == 1:
                gain = shift = None
            a, b = torch.randn(3, inside).to(dtype), torch.randn(out, 3).to(dtype)
            table.write(slot, piece, a, b, 0.5, gain, shift)
            columns = slice(first, first + out)
            base = expected[rows, columns] * (1.0 if gain is None else gain) + (0.0 if shift is None else shift)
            expected[rows, columns] = base + reference.expand(reference.shrink(x[rows], a), b, 0.5)
            first += out
    ours = y.clone()
    ops.add_lora(ours, x, table, Segments.build(slots, lengths, chunk=ops.chunk))
    torch.testing.assert_close(
        ours,
        expected.to(dtype),
        atol=1e-5 if dtype == torch.float32 else 0.1,
        rtol=1e-5 if dtype == torch.float32 else 2**-7,
    )
    assert torch.equal(ours[5:7], y[5:7])
    sizes = [table.slot_bytes(slot) for slot in range(4)]
    assert sizes[2] == sizes[3] < sizes[1]
    assert sizes[0] == 0
    table.clear(1)
    assert table.slot_bytes(1) == 0
    again = y.clone()
    ops.add_lora(again, x, table, Segments.build([1], [10], chunk=ops.chunk))
    assert torch.equal(again, y)


@DTYPES
@pytest.mark.parametrize("chunk", [1, 5, 16])
def test_a_token_gets_the_same_update_in_any_company(cpu_ops, dtype, chunk) -> None:
    table, _ = random_table(96, (64, 32, 32), 6, dtype)
    a, b = torch.randn(3, 96).to(dtype), torch.randn(64, 3).to(dtype)
    table.write(2, 0, a, b, 0.5, torch.randn(64), torch.randn(64))
    table.write(5, 0, a, b, 0.5, torch.randn(64))
    slots, lengths = [2, None, 5, 1, 2, 3], [1, 4, 23, 1, 9, 1]
    x, y = torch.randn(sum(lengths), 96).to(dtype), torch.randn(sum(lengths), 128).to(dtype)
    together = y.clone()
    cpu_ops.add_lora(together, x, table, Segments.build(slots, lengths, chunk=chunk))
    per_token = [slot for slot, length in zip(slots, lengths, strict=True) for _ in range(length)]
    for row, slot in enumerate(per_token):
        alone = y[row : row + 1].clone()
        cpu_ops.add_lora(alone, x[row : row + 1].clone(), table, Segments.build([slot], [1], chunk=16))
        assert torch.equal(alone[0], together[row])


def test_renumbering_the_slots_changes_nothing(cpu_ops) -> None:
    _, adapters = random_table(96, (64, 32), 5, torch.bfloat16)
    x, y = torch.randn(40, 96).bfloat16(), torch.randn(40, 96).bfloat16()
    results = []
    for renumber in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3]):
        table = AdapterTable(5, 96, (64, 32), torch.bfloat16, "cpu")
        for slot, pieces in adapters.items():
            for piece, entry in enumerate(pieces):
                if entry:
                    table.write(renumber[slot], piece, *entry)
        out = y.clone()
        cpu_ops.add_lora(out, x, table, Segments.build([renumber[i % 5] for i in range(40)], [1] * 40, chunk=16))
        results.append(out)
    assert torch.equal(*results)


def test_a_cleared_slot_is_the_base_model(ops) -> None:
    table, _ = random_table(32, (16,), 3, torch.float32)
    x, y = torch.randn(2, 32), torch.randn(2, 16)
    table.write(1, 0, torch.randn(2, 32), torch.randn(16, 2), 1.0)
    table.clear(1)
    out = y.clone()
    ops.add_lora(out, x, table, Segments.build([1], [2], chunk=16))
    assert torch.equal(out, y)


def test_writing_refuses_shapes_that_do_not_fit() -> None:
    table = AdapterTable(2, 32, (16, 8), torch.float32, "cpu")
    with pytest.raises(AssertionError, match="A is"):
        table.write(0, 0, torch.zeros(4, 31), torch.zeros(16, 4), 1.0)
    with pytest.raises(AssertionError, match="B is"):
        table.write(0, 1, torch.zeros(4, 32), torch.zeros(16, 4), 1.0)
