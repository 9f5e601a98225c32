"""Run by test_triton.py with TRITON_INTERPRET=1: trained embeddings against the specification, row by row."""

import torch

from kernels import embedding, reference
from kernels.embedding_table import EmbeddingTable, EmbeddingUpdate
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

VOCAB = 50


def update(rank: int, width: int, dtype: torch.dtype, *, has_gain: bool, is_whole: bool) -> EmbeddingUpdate:
    a, b = torch.randn(VOCAB, rank).to(dtype), torch.randn(rank, width).to(dtype)
    gain = torch.randn(width) if has_gain else None
    return EmbeddingUpdate(a, b, 0.5 + rank / 8, gain, torch.randn(VOCAB, width).to(dtype) if is_whole else None)


def check(dtype: torch.dtype, width: int) -> None:
    """Slot 1 leaves the embedding alone; slot 2 replaces it and has no pair."""
    base, table = torch.randn(VOCAB, width).to(dtype), EmbeddingTable(6, "cpu")
    cases = {
        0: (3, False, False),
        2: (0, False, True),
        3: (17, True, False),
        4: (16, True, True),
        5: (64, False, False),
    }
    for slot, (rank, has_gain, is_whole) in cases.items():
        table.write(slot, update(rank, width, dtype, has_gain=has_gain, is_whole=is_whole))
    slots, lengths = [3, None, 0, 1, 2, 4, 3, 5], [1, 2, 20, 3, 2, 1, 3, 70]
    per_token = [slot for slot, length in zip(slots, lengths, strict=True) for _ in range(length)]
    for tokens in (torch.randint(0, VOCAB, (len(per_token),)), torch.randint(0, VOCAB, (len(per_token),)).int()):
        expected = reference.embedding(base, tokens, per_token, table.updates)
        for chunk in (16, 64):
            segments = Segments.build(slots, lengths, chunk=chunk)
            ours, twin = base[tokens.long()].float(), base[tokens.long()].float()
            embedding.embed(ours, tokens, base, table, segments, upcast=True)
            TorchOps().embed(twin, tokens, base, table, segments)
            torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-5)
            torch.testing.assert_close(twin, expected, atol=1e-4, rtol=1e-5)
            alone = [row for row, slot in enumerate(per_token) if slot in (None, 1)]
            assert torch.equal(ours[alone], base[tokens.long()[alone]].float())
    table.clear(3)
    again = base[tokens.long()].float()
    embedding.embed(again, tokens, base, table, Segments.build([3], [len(tokens)], chunk=64), upcast=True)
    assert torch.equal(again, base[tokens.long()].float()), "what was cleared is gone"


def check_padding() -> None:
    """A chunk of length 0, as graphs pad with, writes nothing, whatever its slot says."""
    base, table = torch.randn(VOCAB, 24), EmbeddingTable(1, "cpu")
    table.write(0, update(5, 24, torch.float32, has_gain=False, is_whole=False))
    rows, zeros = torch.full((4, 24), float("nan")), torch.zeros(2, dtype=torch.int32)
    lengths = torch.tensor([1, 0], dtype=torch.int32)
    padded = Segments(torch.tensor([2, 9], dtype=torch.int32), zeros, zeros, lengths, 1)
    embedding.embed(rows, torch.tensor([1, 2, 3, 4]), base, table, padded, upcast=True)
    assert rows[2].isfinite().all()
    assert rows[[0, 1, 3]].isnan().all()


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that was never written reads as NaN
for kind in (torch.float32, torch.bfloat16):
    for columns in (24, 100):
        check(kind, columns)
check_padding()
