"""Run by test_triton.py: compile every Triton kernel for GPUs that are not there; prints one JSON line for each."""

import json
import re
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels import attention, coded_linear, embedding, kv_store, layer_ops, lora, sampling
from kernels.lora_tiles import LoraWork, choose_tiles
from kernels.paging import PageStore
from kernels.reference import LARGEST_CODE

TYPES = dict.fromkeys(
    ("order", "slots", "starts", "lengths", "ranks", "out_offsets", "positions", "angles", "run_of", "run_starts",
     "page_table", "top_ks", "tokens"), "*i32",
) | dict.fromkeys(
    ("h", "scalings", "sizes", "gains", "rows", "q", "sums", "parts", "k_scale", "v_scale", "cos", "sin", "q_norm",
     "k_norm", "weight", "residual", "logits", "temperatures", "top_ps", "min_ps", "uniforms"), "*fp32",
) | dict.fromkeys(("x", "y", "out", "qkv", "delta", "gate_up", "bias"), "*bf16") | dict.fromkeys(
    ("x_stride", "in_features", "out_features", "h_stride", "y_stride", "table_width", "q_heads", "half", "runs",
     "segments", "window", "out_stride", "width", "count", "vocab", "stride"), "i32",
) | {"pointers": "*i64", "scale": "fp32", "cap": "fp32", "eps": "fp32"}  # fmt: skip
FULL = 90  # every case is compiled for this one, and the most common for the others
# Sizes that a model of this width passes are multiples of 16, and Triton specialises on that.
EVEN = {"x_stride", "in_features", "out_features", "h_stride", "y_stride", "out_stride", "q_heads", "half", "width"}


def shapes(dim: int, page: int, kind: str, capability: int) -> tuple[attention.Geometry, dict[str, Any]]:
    """Of 32 q heads over 8 K/V heads."""
    v = torch.empty(1, 8, page, dim, dtype=torch.uint8, device="meta")
    geometry = attention.Geometry.of(32, PageStore(v, v, None, None), capability // 10)
    constants = {"KV_HEADS": 8, "PAGE": page, "DIM": dim, "GROUP": 4, "TILE": geometry.tile, "BLOCK": geometry.block}
    return geometry, constants | {"HAS_CAP": dim == 256, "HAS_WINDOW": dim == 256, "UPCAST": False, "pages": kind}


def attention_cases(capability: int) -> list[tuple[Any, dict[str, Any], int, int]]:
    cases = []
    models = [(128, 64, "*u8"), (64, 16, "*u8"), (256, 64, "*u8"), (128, 64, "*bf16")]
    for dim, page, kind in models if capability == FULL else models[:1]:
        geometry, constants = shapes(dim, page, kind, capability)
        short = constants | {"SLOTS": 1, "ROWS": geometry.short_rows, "SEGMENT": 512}
        long = constants | {"SLOTS": 4, "ROWS": geometry.long_rows}
        cases += [(attention.segment_kernel, short, 4, geometry.stages), (attention.prefill_kernel, long, 8, 2)]
    merge = {"SLOTS": 1, "DIM": 128, "BLOCK": 128, "SEGMENT": 512, "HAS_WINDOW": False}
    return [*cases, (attention.merge_kernel, merge, 1, 3)]


def lora_cases() -> list[tuple[Any, dict[str, Any], int, int]]:
    cases = []
    for chunks, longest, rank in ((1, 1, 16), (64, 2, 128), (32, 64, 64)):
        tiles = choose_tiles(LoraWork(chunks * longest, chunks, lora.rows_of_chunk(longest), 3, rank, 4096), 132, {})
        shared = {"SLICES": 3, "SPLITS": tiles.splits, "CHUNK": lora.rows_of_chunk(longest), "RANK_TILE": tiles.rank}
        for kernel, extra in ((lora.lora_shrink_kernel, {"IN_TILE": tiles.inside}),
                              (lora.lora_expand_kernel, {"OUT_TILE": tiles.out})):  # fmt: skip
            cases.append((kernel, shared | extra | {"ALIGNED": True, "UPCAST": False}, tiles.warps, tiles.stages))
    return cases


def coded_cases(capability: int) -> list[tuple[Any, dict[str, Any], int, int]]:
    """GEMMs over one byte, from decodes to prefill; e4m3 where the device has a unit for it."""
    cases = []
    for kind, name in ((torch.int8, "*i8"), (torch.float8_e4m3fn, "*fp8e4nv")):
        if name == "*fp8e4nv" and capability < 89:
            continue
        code = {"LARGEST": LARGEST_CODE[kind], "BLOCK": coded_linear.BLOCK, "ROUNDS": False, "types": {"codes": name}}
        cases.append((coded_linear.code_rows_kernel, code, 4, 3))
        for tokens in (1, 32, 64, 512) if capability == FULL else (1, 512):
            tiles = coded_linear.choose_tiles(tokens)
            constants = {"HAS_BIAS": True, "ROWS": tiles.rows, "OUT_TILE": tiles.out, "IN_TILE": tiles.inside}
            types = {"x": name, "w": name}
            cases.append((coded_linear.coded_linear_kernel, constants | {"types": types}, tiles.warps, tiles.stages))
    return cases


def embedding_case() -> tuple[Any, dict[str, Any], int, int]:
    tiles = {"CHUNK": 16, "RANK_TILE": embedding.RANK_TILE, "OUT_TILE": embedding.OUT_TILE}
    more = {"ALIGNED": True, "UPCAST": False, "types": {"weight": "*bf16"}}
    return embedding.embed_kernel, tiles | more, 4, 3


def other_cases(capability: int) -> list[tuple[Any, dict[str, Any], int, int]]:
    store = {"KV_HEADS": 8, "PAGE": 64, "DIM": 128, "BLOCK": 128, "HAS_NORMS": True, "pages": "*u8"}
    return [
        (layer_ops.add_norm_kernel, {"HAS_DELTA": True, "BLOCK": 4096}, 8, 3),
        (layer_ops.gate_kernel, {"IS_GELU": False, "BLOCK": 1024}, 4, 3),
        *([(sampling.sample_kernel, {"BLOCK": sampling.BLOCK}, 8, 3)] if capability == FULL else []),
        (kv_store.rope_and_store_kernel, store, 1, 3),
        embedding_case(),
    ]


def report(kernel: Any, constants: dict[str, Any], warps: int, stages: int, capability: int) -> dict[str, Any]:
    pages = {"k": constants.get("pages", "*u8"), "v": constants.get("pages", "*u8")}
    inner = {name: value for name, value in constants.items() if name not in ("pages", "types")}
    types = TYPES | pages | constants.get("types", {})
    signature = {name: "constexpr" if name in inner else types[name] for name in kernel.arg_names}
    even = [i for i, (name, kind) in enumerate(signature.items()) if kind.startswith("*") or name in EVEN]
    source = ASTSource(
        fn=kernel, signature=signature, constexprs=inner, attrs={(i,): [["tt.divisibility", 16]] for i in even}
    )
    options = {"num_warps": warps, "num_stages": stages}
    with redirect_stdout(StringIO()) as log:
        built = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    ptx = built.asm["ptx"]
    return {
        "kernel": kernel.fn.__name__,
        "capability": capability,
        "constants": constants,
        "units": [unit for unit in ("mma.sync", "wgmma", "tcgen05.mma") if unit in ptx],
        "atomics": sum(line.strip().startswith(("atom.", "red.")) for line in ptx.splitlines()),
        "spills": sum(map(int, re.findall(r"(\d+) bytes spill", log.getvalue()))),
        "registers": max(map(int, re.findall(r"Used (\d+) registers", log.getvalue()))),
        "half_loads": len(re.findall(r"ld\.global(?!\S*\.v\d)\S*\.b16", ptx)),
        "byte_loads": len(re.findall(r"ld\.global\S*\.b8", ptx)),
    }


with tempfile.TemporaryDirectory() as cache:
    knobs.cache.dir, knobs.nvidia.dump_ptxas_log = cache, True
    for capability in map(int, sys.argv[1:]):
        for case in (*attention_cases(capability), *lora_cases(), *coded_cases(capability), *other_cases(capability)):
            sys.stdout.write(json.dumps(report(*case, capability)) + "\n")
