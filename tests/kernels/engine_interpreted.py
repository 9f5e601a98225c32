"""Run by test_triton.py with TRITON_INTERPRET=1: a whole model whose every op is Triton, against torch's ops.

Arguments: folder of a model, type of its pages, and more such pairs. Requests share batches:
prompts cut into chunks, decodes, adapters of several ranks.
"""

import sys
from pathlib import Path

import torch

from engine.adapters.bank import LoraBank, LoraWeights
from engine.cache.kv import KVCache
from engine.config import KVType
from engine.models.decoder import Decoder
from engine.models.families import read_plan
from engine.models.layers import Ops, Step
from engine.models.weights import Checkpoint
from kernels.cuda_ops import CudaOps
from kernels.paging import PagedBatch
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

PAGE = 8
SLOTS = (0, None, 2, 2)
# Of each step: (sequence, start, length)
STEPS = (
    ((0, 0, 9), (1, 0, 1)),
    ((0, 9, 1), (1, 1, 4), (2, 0, 30)),
    ((0, 10, 1), (1, 5, 1), (2, 30, 1)),
    ((2, 31, 3), (3, 0, 2)),
)


def model_with(ops: Ops, folder: Path, kv_type: KVType) -> tuple[Decoder, KVCache]:
    plan = read_plan(folder)
    info = plan.info("tiny")
    bank = LoraBank(info, 3, 16, torch.float32, "cpu")
    dice = torch.Generator().manual_seed(1)
    for slot, rank in ((0, 3), (2, 9)):
        weights = {
            (layer, module): LoraWeights(
                torch.randn(rank, inside, generator=dice) / 4, torch.randn(out, rank, generator=dice) / 4, 0.5
            )
            for layer in range(info.num_layers)
            for module, (out, inside) in info.modules.items()
        }
        bank.write(slot, weights)
    with Checkpoint(folder) as checkpoint:
        return Decoder(plan, checkpoint, bank, ops), KVCache(info, 24, PAGE, kv_type)


@torch.inference_mode()
def logits_of(ops: Ops, folder: Path, kv_type: KVType) -> torch.Tensor:
    """Of every token of every step. Sequence i lies in pages i, i + 4, i + 8, ..."""
    model, kv = model_with(ops, folder, kv_type)
    dice, found = torch.Generator().manual_seed(2), []
    for runs in STEPS:
        starts, lengths = [start for _, start, _ in runs], [length for _, _, length in runs]
        tables = [[number + 4 * page for page in range(6)] for number, _, _ in runs]
        batch = PagedBatch.build(starts, lengths, tables, PAGE, "cpu")
        slots = [SLOTS[number] for number, _, length in runs for _ in range(length)]
        segments = Segments.build(slots, [1] * len(slots), chunk=ops.chunk)
        tokens = torch.randint(0, 200, (len(slots),), generator=dice)
        residual, delta = model.hidden(tokens, Step(batch, segments, slots), kv)
        found.append(model.logits(residual, delta, slots))
    return torch.cat(found)


# In FP8 what differs in a last bit before rounding may differ by a step of e3m4 behind it.
TOLERANCE: dict[KVType, float] = {"fp32": 1e-4, "fp8": 5e-2}


def check(folder: Path, kv_type: KVType) -> None:
    ours, expected = (logits_of(ops, folder, kv_type) for ops in (CudaOps(interpreted=True), TorchOps()))
    assert expected.std() > 0.1, "logits that are all alike would prove nothing"
    torch.testing.assert_close(ours, expected, atol=TOLERANCE[kv_type], rtol=TOLERANCE[kv_type])


torch.manual_seed(0)
for name, kind in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    check(Path(name), kind)
