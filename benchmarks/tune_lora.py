"""Measure block shapes of the LoRA pair on the GPU at hand and keep the best in kernels/tuned/.

`python -m benchmarks.tune_lora [--cpu] [--seconds 0.1] [--folder kernels/tuned]`

One table for each GPU: by rank class and by how many tokens a launch adapts. `--cpu` is a dry run on tiny shapes in
Triton's interpreter.
"""

import argparse
import os
import sys
from itertools import product
from pathlib import Path

from kernels.lora_tiles import TUNED, LoraTiles, write_table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true", help="a dry run without a GPU")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each figure (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where the table goes")
    options = parser.parse_args()
    if options.cpu:
        os.environ["TRITON_INTERPRET"] = "1"
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    import torch  # these only here: Triton reads at import whether it interprets

    from benchmarks.gpu.cases import adapters
    from benchmarks.gpu.device import open_device
    from benchmarks.gpu.timings import INSIDE, OUTS
    from kernels.lora import add_lora
    from kernels.segments import Segments

    device = open_device(options.cpu, options.seconds)
    inside, outs = (INSIDE, OUTS) if device.is_real else (64, (32, 16))
    classes = product((16, 32, 64, 128), (1, 8, 32, 128, 512, 2048)) if device.is_real else ((16, 1), (16, 8))
    table: dict[tuple[int, int], LoraTiles] = {}
    for rank, tokens in classes:
        weights = adapters(device.kind, [rank] * min(tokens, 16), torch.bfloat16, inside, outs)
        slots: list[int | None] = [i % min(tokens, 16) for i in range(tokens)]
        segments = Segments.build(slots, [1] * tokens, chunk=device.ops.chunk, device=device.kind)
        x = torch.randn(tokens, inside, device=device.kind, dtype=torch.bfloat16)
        y = torch.zeros(tokens, sum(outs), device=device.kind, dtype=torch.bfloat16)
        best = float("inf")
        for tiles in _candidates(rank, device.is_real):
            try:
                took = device.seconds(
                    lambda t=tiles: add_lora(y, x, weights, segments, t, upcast=not device.is_real)  # type: ignore[misc]  # noqa: B023
                )
            except Exception as error:  # a shape that this GPU has no room for
                print(f"rank {rank}, {tokens} tokens, {tiles}: {type(error).__name__}")
                continue
            if took < best:
                best, table[rank, tokens] = took, tiles
        print(f"rank {rank}, {tokens} tokens: {best * 1e6:.1f} us with {table.get((rank, tokens))}", flush=True)
    print(write_table(device.name, table, options.folder or TUNED))
    return 0


def _candidates(rank: int, real: bool) -> list[LoraTiles]:
    ranks = [each for each in (16, 32, 64) if each <= rank]
    shapes = product(ranks, (64, 128), (64, 128), (1, 2, 4, 8), (4,), (2, 3)) if real else [(16, 32, 32, 1, 4, 3)]
    return [LoraTiles(*shape) for shape in shapes]


if __name__ == "__main__":
    sys.exit(main())
