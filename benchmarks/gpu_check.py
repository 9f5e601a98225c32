"""Prove every kernel on the GPU at hand, then time kernels and whole steps against what the device allows.

`python -m benchmarks.gpu_check --minutes 8 [--cpu] [--out FILE]`

Correctness first, then timings, then a Llama-3.1-8B-shaped model of random weights. A section that fails is named and
the next begins. Prints tables, then one JSON line, which is also written to benchmarks/results/gpu-<name>.json. Needs
torch, triton, safetensors, tokenizers, msgspec and numpy. `--cpu` is a dry run on tiny shapes in Triton's interpreter:
its figures mean nothing.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true", help="a dry run without a GPU")
    parser.add_argument("--minutes", type=float, default=8.0, help="after which nothing new begins (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each figure (%(default)s)")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    options = parser.parse_args()
    if options.cpu:
        os.environ["TRITON_INTERPRET"] = "1"
    sys.path.insert(0, str(ROOT))
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    import torch  # these only here: Triton reads at import whether it interprets
    import triton

    from benchmarks.gpu import proofs, timings, whole
    from benchmarks.gpu.device import open_device
    from benchmarks.gpu.report import Report
    from kernels.lora_tiles import file_name

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    report = Report(time.monotonic() + 60 * options.minutes)
    device = open_device(options.cpu, options.seconds)
    environment = {
        "device": device.name,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "copy_gb_s": round(device.copy / 1e9, 1),
        "bf16_tflops": round(device.multiply / 1e12, 2),
    }
    print("\n".join(f"{name}: {value}" for name, value in environment.items()), flush=True)
    for name, lines in (
        ("correct: LoRA pair", proofs.lora_pair),
        ("correct: attention", proofs.attention),
        ("correct: small ops", proofs.small_ops),
        ("correct: sampling", proofs.sampling),
        ("time: LoRA pair", timings.lora_pair),
        ("time: decode attention", timings.decode),
        ("time: prefill attention", timings.prefill),
        ("time: small ops", timings.small_ops),
        ("time: sampling", timings.sampling),
        ("whole steps of an 8B model", whole.steps),
        ("KV concurrency", whole.concurrency),
    ):
        report.section(name, lambda lines=lines: lines(device))  # type: ignore[misc]
    result = json.dumps({"environment": environment} | report.as_dict())
    print(result)
    out = options.out or ROOT / "benchmarks" / "results" / f"gpu-{file_name(device.name)}"
    if options.out or device.is_real:
        out.write_text(result + "\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
