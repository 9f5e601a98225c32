"""Run by test_lora_triton.py: compile the Triton pair for a GPU that is not there; prints one JSON line per kernel."""

import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels import lora

INTEGERS = dict.fromkeys(("order", "slots", "starts", "lengths", "ranks", "out_offsets"), "*i32")
TILES = {"SLICES": 3, "CHUNK": lora.CHUNK, "RANK_TILE": lora.RANK_TILE, "UPCAST": False}
KERNELS = {
    lora.lora_shrink_kernel: (
        {"x": "*bf16", "h": "*fp32", "pointers": "*i64", "x_stride": "i32", "in_features": "i32", "h_stride": "i32"},
        TILES | {"IN_TILE": lora.IN_TILE},
    ),
    lora.lora_expand_kernel: (
        {"y": "*bf16", "h": "*fp32", "pointers": "*i64", "scalings": "*fp32", "y_stride": "i32", "h_stride": "i32"},
        TILES | {"OUT_TILE": lora.OUT_TILE},
    ),
}


def compile_for(capability: int) -> None:
    for kernel, (types, constants) in KERNELS.items():
        known = types | INTEGERS | dict.fromkeys(constants, "constexpr")
        signature = {name: known[name] for name in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        built = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
        ptx = built.asm["ptx"]
        report = {
            "kernel": kernel.fn.__name__,
            "matrix_unit": "mma.sync" in ptx or "wgmma" in ptx,
            "atomics": sum(line.strip().startswith(("atom.", "red.")) for line in ptx.splitlines()),
            "spills": ptx.count("st.local"),
        }
        sys.stdout.write(json.dumps(report) + "\n")


compile_for(int(sys.argv[1]))
