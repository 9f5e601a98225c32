"""Prove every kernel on the GPU at hand, then time kernels and whole steps against what the device allows.

`python -m benchmarks.gpu_check --minutes 8 [--cpu] [--out FILE]`

Correctness first, then timings, then a Llama-3.1-8B-shaped model of random weights. A section that fails is named and
the next begins, also where it kills its process, hangs, or leaves the device unusable. Prints tables, then one JSON
line, which is also written to benchmarks/results/gpu-<name>.json. Needs torch, triton, safetensors, tokenizers, msgspec
and numpy. `--cpu` is a dry run on tiny shapes in Triton's interpreter: its figures mean nothing.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu.watch import BROKEN, Record, watch

if TYPE_CHECKING:
    from benchmarks.gpu.device import Device
    from benchmarks.gpu.report import Line

ROOT = Path(__file__).resolve().parents[1]
# What is proven and timed, by module and function of benchmarks/gpu: a module that does not import fails alone.
SECTIONS = {
    "correct: LoRA pair": "proofs.lora_pair",
    "correct: attention": "proofs.attention",
    "correct: small ops": "proofs.small_ops",
    "correct: sampling": "proofs.sampling",
    "correct: weights of one byte": "coded.proofs",
    "correct: adapted embeddings": "ends.proofs",
    "time: LoRA pair": "timings.lora_pair",
    "time: decode attention": "timings.decode",
    "time: prefill attention": "timings.prefill",
    "time: weights of one byte": "coded.timings",
    "time: small ops": "timings.small_ops",
    "time: sampling": "timings.sampling",
    "time: adapted embeddings": "ends.timings",
    "whole steps of an 8B model": "whole.steps",
    "whole steps, weights of one byte": "whole.coded_steps",
    "overlapping steps": "overlapping.steps",
    "KV concurrency": "whole.concurrency",
}


def main() -> int:
    options = _parser().parse_args()
    if options.log is not None:
        return _sections(options)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"

        def command(first: int) -> list[str]:
            left = max(0.0, (end - time.monotonic()) / 60)
            own = [
                "--log",
                str(log),
                "--first",
                str(first),
                "--minutes",
                f"{left:.3f}",
                "--seconds",
                f"{options.seconds}",
            ]
            return [sys.executable, "-m", "benchmarks.gpu_check", *own, *(["--cpu"] if options.cpu else [])]

        found = watch(command, list(SECTIONS), log, options.stall)
    body = {"lines": found.lines, "failures": found.failures, "left_out": found.left_out}
    result = json.dumps({"environment": found.environment} | body)
    print(result)
    if options.out or not options.cpu:
        out = options.out or ROOT / "benchmarks" / "results" / f"gpu-{found.environment.get('file', 'unknown.json')}"
        out.write_text(result + "\n")
    return 1 if found.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cpu", action="store_true", help="a dry run without a GPU")
    add("--minutes", type=float, default=8.0, help="after which nothing new begins (%(default)s)")
    add("--seconds", type=float, default=0.2, help="for each figure (%(default)s)")
    add("--stall", type=float, default=120.0, help="seconds without a figure that end a section (%(default)s)")
    add("--out", type=Path, help="where the JSON goes")
    add("--log", type=Path, help=argparse.SUPPRESS)  # of the process that does the work
    add("--first", type=int, default=0, help=argparse.SUPPRESS)
    return parser


def _sections(options: argparse.Namespace) -> int:
    """The process that does the work: sections from the first on."""
    if options.cpu:
        os.environ["TRITON_INTERPRET"] = "1"
    import torch  # these only here: Triton reads at import whether it interprets
    import triton

    from benchmarks.gpu.device import open_device
    from benchmarks.gpu.report import Report
    from kernels.lora_tiles import file_name

    def note(record: Record) -> None:
        with options.log.open("a") as log:
            log.write(json.dumps(record) + "\n")

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    report = Report(time.monotonic() + 60 * options.minutes, note)
    device = open_device(options.cpu, options.seconds)
    environment = {
        "device": device.name,
        "file": file_name(device.name),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "copy_gb_s": round(device.copy / 1e9, 1),
        "bf16_tflops": round(device.multiply / 1e12, 2),
    }
    note({"environment": environment})
    print("\n".join(f"{name}: {value}" for name, value in environment.items()), flush=True)
    for name, where in list(SECTIONS.items())[options.first :]:
        report.section(name, lambda where=where: _lines(where, device))  # type: ignore[misc]
        if report.is_broken:
            return BROKEN
    return 0


def _lines(where: str, device: "Device") -> "Iterator[Line]":
    module, function = where.split(".")
    lines: Iterator[Line] = getattr(import_module(f"benchmarks.gpu.{module}"), function)(device)
    return lines


if __name__ == "__main__":
    sys.exit(main())
