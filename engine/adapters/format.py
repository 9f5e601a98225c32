"""A PEFT folder -> `AdapterSpec`, or `AdapterRefused` with every reason. Torch-free: the control plane checks with it.

What is accepted is what the engine serves: LoRA on the linears of a Llama-family model, any rank up to the limit and
mixed ranks, rsLoRA, rank and alpha patterns, a part of the modules or layers, in fp32, fp16 or bf16.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.adapters.base_shape import BaseShape
from engine.adapters.files import ADAPTER_FILES, TENSOR_FILE, check_files, check_names, digest_of, folder_digest
from engine.adapters.lora_config import CONFIG_FILE, LoraSettings, read_config
from engine.adapters.patterns import PatternError
from engine.adapters.problems import AdapterRefused, Problem, counted
from engine.adapters.safetensors_header import HeaderError, TensorEntry, read_header
from engine.adapters.tensors import LoraPair, check_values, pair_tensors

__all__ = [
    "ADAPTER_FILES",
    "AdapterRefused",
    "AdapterSpec",
    "BaseShape",
    "Limits",
    "ModuleLora",
    "Problem",
    "check_adapter",
    "check_names",
    "digest_of",
    "folder_digest",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """max_rank: of any module. max_bytes: of both files together."""

    max_rank: int = 64
    max_bytes: int = 512_000_000


@dataclass(frozen=True, slots=True)
class ModuleLora:
    """One module's update, `scaling * B A`: tensors `a_key` [rank, in] and `b_key` [out, rank] of the file.

    module: its name inside a layer, such as `self_attn.q_proj`.
    """

    layer: int
    module: str
    rank: int
    scaling: float
    a_key: str
    b_key: str


@dataclass(frozen=True, slots=True)
class AdapterSpec:
    """A checked adapter. modules: by layer and module. target_modules: sorted short names (`q_proj`).

    dtype: F32, F16 or BF16, the widest in the file. size_bytes: of both files. digest: `folder_digest`.
    """

    modules: tuple[ModuleLora, ...]
    max_rank: int
    target_modules: tuple[str, ...]
    dtype: str
    size_bytes: int
    digest: str


def check_adapter(folder: Path, base: BaseShape, limits: Limits) -> AdapterSpec:
    """Raises AdapterRefused, or OSError where the folder cannot be read."""
    problems = check_files(folder, limits.max_bytes)
    unreadable = {problem.where for problem in problems if problem.code in ("file_missing", "file_not_regular")}
    too_large = any(problem.code == "size_over_limit" for problem in problems)
    settings: LoraSettings | None = None
    if CONFIG_FILE not in unreadable and not too_large:
        settings, more = read_config((folder / CONFIG_FILE).read_bytes(), base)
        problems += more
    pairs: list[LoraPair] = []
    if TENSOR_FILE not in unreadable and not too_large:
        with (folder / TENSOR_FILE).open("rb") as file:
            pairs, more = _check_tensors(file, (folder / TENSOR_FILE).stat().st_size, base, limits)
        problems += more
    modules, more = _modules(pairs, settings)
    problems += more
    if problems:
        raise AdapterRefused(problems)
    return _spec(folder, pairs, modules)


def _check_tensors(file: BinaryIO, size: int, base: BaseShape, limits: Limits) -> tuple[list[LoraPair], list[Problem]]:
    try:
        entries = read_header(file, size)
    except HeaderError as error:
        return [], [error.problem]
    pairs, problems = pair_tensors(entries, base, limits.max_rank)
    return pairs, problems + check_values(file, entries, pairs)


def _modules(pairs: list[LoraPair], settings: LoraSettings | None) -> tuple[list[ModuleLora], list[Problem]]:
    """Scalings from the config, ranks from the tensors; where the two disagree, PEFT could not load the file."""
    modules: list[ModuleLora] = []
    mismatched: dict[tuple[int, int], list[str]] = defaultdict(list)
    if settings is None:
        return [], []
    for pair in pairs:
        try:
            rank, scaling = settings.rank_of(pair.layer, pair.module), settings.scaling_of(pair.layer, pair.module)
        except PatternError as error:
            remedy = "Use module names instead of regular expressions."
            return [], [Problem("config_invalid", f"{CONFIG_FILE}: patterns", str(error), "simple patterns", remedy)]
        if rank != pair.rank:
            mismatched[pair.rank, rank].append(pair.a.name)
        modules.append(ModuleLora(pair.layer, pair.module, pair.rank, scaling, pair.a.name, pair.b.name))
    return modules, [_mismatch(names, *ranks) for ranks, names in mismatched.items()]


def _mismatch(names: list[str], found: int, configured: int) -> Problem:
    remedy = (
        "Upload config and tensors of the same training run. Where several keys of rank_pattern match one module, "
        "the first one in the file decides."
    )
    return Problem("rank_mismatch", counted(names), f"rank {found}", f"rank {configured}, as configured", remedy)


def _spec(folder: Path, pairs: list[LoraPair], modules: list[ModuleLora]) -> AdapterSpec:
    entries: list[TensorEntry] = [entry for pair in pairs for entry in (pair.a, pair.b)]
    return AdapterSpec(
        modules=tuple(modules),
        max_rank=max(module.rank for module in modules),
        target_modules=tuple(sorted({module.module.rsplit(".", 1)[-1] for module in modules})),
        dtype=max((entry.dtype for entry in entries), key=["F16", "BF16", "F32"].index),
        size_bytes=sum((folder / name).stat().st_size for name in ADAPTER_FILES),
        digest=folder_digest(folder),
    )
