"""A PEFT folder -> `AdapterSpec`, or `AdapterRefused` with every reason. Torch-free: the control plane checks with it.

What is accepted is what the engine serves right; docs/adapters.md lists it, and every code of a refusal.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.adapters.base_shape import EMBEDDING, HEAD, BaseShape
from engine.adapters.files import (
    ADAPTER_FILES,
    INDEX_FILE,
    check_names,
    digest_of,
    folder_digest,
    is_adapter_file,
    is_tensor_file,
)
from engine.adapters.lora_config import CONFIG_FILE, LoraSettings, read_config
from engine.adapters.names import Part
from engine.adapters.patterns import PatternError
from engine.adapters.problems import AdapterRefused, Problem, counted
from engine.adapters.safetensors_header import ITEM_BYTES, TensorEntry
from engine.adapters.shards import Entries, check_index, read_entries
from engine.adapters.source import Folder, Source
from engine.adapters.spec import AdapterSpec, Limits, ModuleLora
from engine.adapters.tensors import ModuleTensors, check_effect, check_values, group_tensors
from engine.adapters.values import Scan, scan_bytes

__all__ = [
    "ADAPTER_FILES",
    "AdapterRefused",
    "AdapterSpec",
    "BaseShape",
    "Checked",
    "Limits",
    "ModuleLora",
    "Problem",
    "check_adapter",
    "check_names",
    "check_numbers",
    "check_source",
    "digest_of",
    "folder_digest",
    "is_adapter_file",
]
_UNREADABLE = ("file_missing", "file_not_regular")
_DTYPES = ("F16", "BF16", "F32")
_WHOLE: tuple[Part, ...] = ("base", "saved")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found. Of two adapters of the same names, sizes, config and headers it is the same, but for the
    digest. tensors: the modules' entries."""

    spec: AdapterSpec
    tensors: tuple[ModuleTensors, ...]


def check_adapter(folder: Path, base: BaseShape, limits: Limits) -> AdapterSpec:
    """Raises AdapterRefused, or OSError where the folder cannot be read."""
    return check_source(Folder(folder), base, limits).spec


def check_source(source: Source, base: BaseShape, limits: Limits, scan: Scan = scan_bytes) -> Checked:
    """Raises AdapterRefused. scan: any that agrees with `scan_bytes`."""
    problems = source.problems(limits.max_bytes)
    unreadable = {problem.where for problem in problems if problem.code in _UNREADABLE}
    too_large = any(problem.code == "size_over_limit" for problem in problems)
    names = sorted(source.sizes.keys() - unreadable)
    settings: LoraSettings | None = None
    if CONFIG_FILE in names and not too_large:
        settings, more = read_config(_whole(source, CONFIG_FILE), base)
        problems += more
    tensors: list[ModuleTensors] = []
    if not too_large:
        tensors, more = _check_tensors(source, names, base, limits, scan)
        problems += more
    modules, more = _modules(tensors, settings)
    problems += more
    if problems:
        raise AdapterRefused(problems)
    assert settings is not None, "a config without problems has settings"
    return Checked(_spec(source, names, base, tensors, modules, settings), tuple(tensors))


def check_numbers(source: Source, known: Checked, scan: Scan) -> None:
    """What of the check depends on the tensors' numbers. known: of the same names, sizes, config and headers.

    Raises AdapterRefused."""
    entries = {name: source.header(name) for name in known.spec.files if is_tensor_file(name)}
    problems = _check_numbers(source, entries, known.tensors, scan)
    if problems:
        raise AdapterRefused(problems)


def _check_tensors(
    source: Source, names: Sequence[str], base: BaseShape, limits: Limits, scan: Scan
) -> tuple[list[ModuleTensors], list[Problem]]:
    files = [name for name in names if is_tensor_file(name)]
    entries, problems = read_entries(source, files)
    if problems or not files:
        return [], problems
    if INDEX_FILE in names:
        problems = check_index(_whole(source, INDEX_FILE), entries)
    modules, more = group_tensors([entry for each in entries.values() for entry in each], base, limits.max_rank)
    problems += [*more, *_saved_size(modules, limits)]
    return modules, problems + _check_numbers(source, entries, modules, scan)


def _check_numbers(source: Source, entries: Entries, modules: Sequence[ModuleTensors], scan: Scan) -> list[Problem]:
    problems = []
    for name, theirs in entries.items():
        problems += check_values(partial(source.read, name), theirs, scan)

    def is_zero(entry: TensorEntry) -> bool:
        name = next(name for name, theirs in entries.items() if entry in theirs)
        return entry.dtype in ITEM_BYTES and scan(source.read(name, entry.start, entry.end), entry.dtype)[1]

    return problems + check_effect(modules, is_zero)


def _whole(source: Source, name: str) -> bytes:
    return bytes(source.read(name, 0, source.sizes[name]))


def _saved_size(modules: list[ModuleTensors], limits: Limits) -> Iterator[Problem]:
    saved = [module.parts[part] for module in modules for part in _WHOLE if part in module.parts]
    size = sum(entry.size for entry in saved)
    if size > limits.max_saved_bytes:
        remedy = (
            "Save in bfloat16, or train lm_head and embed_tokens by LoRA and save with save_embedding_layers=False."
        )
        where = counted([entry.name for entry in saved])
        found = f"whole weights of {size} bytes"
        yield Problem("saved_over_limit", where, found, f"at most {limits.max_saved_bytes} bytes", remedy)


def _modules(tensors: list[ModuleTensors], settings: LoraSettings | None) -> tuple[list[ModuleLora], list[Problem]]:
    """Scalings from the config, ranks from the tensors; where the two disagree, PEFT could not load the file."""
    if settings is None:
        return [], []
    modules: list[ModuleLora] = []
    mismatched: dict[tuple[int, int], list[str]] = defaultdict(list)
    for each in tensors:
        try:
            rank, scaling = settings.rank_of(each.layer, each.module), settings.scaling_of(each.layer, each.module)
        except PatternError as error:
            remedy = "Use module names instead of regular expressions."
            return [], [Problem("config_invalid", f"{CONFIG_FILE}: patterns", str(error), "simple patterns", remedy)]
        if each.rank and rank != each.rank:
            mismatched[each.rank, rank].append(each.named)
        if each.rank or "bias" in each.parts:
            modules.append(_module(each, scaling))
    problems = [_mismatch(names, *ranks) for ranks, names in mismatched.items()]
    return modules, problems + list(_contradictions(tensors, settings))


def _module(each: ModuleTensors, scaling: float) -> ModuleLora:
    return ModuleLora(
        each.layer,
        each.module,
        each.rank,
        scaling,
        each.key_of("A") or "",
        each.key_of("B") or "",
        each.key_of("magnitude"),
        each.key_of("lora_bias"),
        each.key_of("bias"),
    )


def _mismatch(names: list[str], found: int, configured: int) -> Problem:
    remedy = (
        "Upload config and tensors of the same training run. Where several keys of rank_pattern match one module, "
        "the first one in the file decides."
    )
    return Problem("rank_mismatch", counted(names), f"rank {found}", f"rank {configured}, as configured", remedy)


def _contradictions(tensors: list[ModuleTensors], settings: LoraSettings) -> Iterator[Problem]:
    """What PEFT would leave out, or make up, because config and tensors differ; and what it does not combine."""
    remedy = "Upload config and tensors of the same training run."
    pairs = [each for each in tensors if each.rank]
    linears = [each for each in pairs if each.module != EMBEDDING]
    for part, key, wanted, asked in (
        ("magnitude", "use_dora", settings.dora, pairs),
        ("lora_bias", "lora_bias", settings.lora_bias, linears),
    ):
        odd = [each.named for each in asked if (part in each.parts) is not wanted]
        if odd:
            found = f"pairs {'without' if wanted else 'with'} a {part.replace('_', ' ')}"
            expected = f"{'one for each' if wanted else 'none'}, as {key} is {str(wanted).lower()}"
            yield Problem("config_tensor_mismatch", counted(odd), found, expected, remedy)
    twice = [each.named for each in pairs if "saved" in each.parts]
    if twice:
        remedy = "Name a module in target_modules or in modules_to_save, not in both."
        yield Problem("module_trained_twice", counted(twice), "a pair and a whole weight", "one of them", remedy)
    wide = [each.named for each in tensors if each.module == EMBEDDING or not each.rank or "bias" in each.parts]
    if settings.invocation and wide:
        found = "an activated LoRA that changes the model before its invocation too"
        remedy = "Train again on linears of the layers and lm_head only, or without alora_invocation_tokens."
        yield Problem("alora_unsupported", counted(wide), found, "pairs of linears", remedy)


def _spec(
    source: Source,
    names: Sequence[str],
    base: BaseShape,
    tensors: list[ModuleTensors],
    modules: list[ModuleLora],
    settings: LoraSettings,
) -> AdapterSpec:
    entries = [entry for each in tensors for entry in each.parts.values()]
    saved = _saved(tensors, base, settings)
    return AdapterSpec(
        modules=tuple(modules),
        max_rank=max(module.rank for module in modules),
        target_modules=tuple(sorted({name.rsplit(".", 1)[-1] for name in (*(m.module for m in modules), *saved)})),
        dtype=max((entry.dtype for entry in entries), key=_DTYPES.index),
        size_bytes=sum(source.sizes[name] for name in names),
        digest=source.digest(),
        files=tuple(names),
        saved=saved,
        invocation=settings.invocation,
    )


def _saved(tensors: list[ModuleTensors], base: BaseShape, settings: LoraSettings) -> dict[str, str]:
    """Which tensor is the weight of embedding and head, where it is not the base model's.

    As PEFT loads them: what modules_to_save names is a copy for this module alone. Any other whole weight goes into the
    base model, where the two share it if they are tied; loaded last, the head's wins.
    """
    copies, shared = dict[str, str](), dict[str, str]()
    for each in tensors:
        for part in _WHOLE:
            key = each.key_of(part)
            if key is not None:
                is_copy = part == "saved" and each.module in settings.saved
                (copies if is_copy else shared)[each.module] = key
    if base.tied and shared:
        shared = dict.fromkeys((EMBEDDING, HEAD), shared.get(HEAD) or shared[EMBEDDING])
    return shared | copies
