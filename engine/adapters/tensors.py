"""Tensor entries of an adapter file -> LoRA pairs of the base model's modules, and what is wrong with them.

Problems of one kind are told once, with the first tensor's name and the number of others: an adapter of another base
model is wrong in hundreds of tensors for one reason.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from engine.adapters.base_shape import MODULES, BaseShape
from engine.adapters.problems import Problem, counted
from engine.adapters.safetensors_header import ITEM_BYTES, TensorEntry
from engine.adapters.values import first_non_finite, is_all_zero

_NAME = re.compile(
    r"(?:base_model\.model\.)?model\.layers\.(?P<layer>0|[1-9][0-9]{0,5})\."
    rf"(?P<module>{'|'.join(map(re.escape, MODULES))})\.lora_(?P<side>[AB])\.weight"
)
_EXAMPLE = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"

# Names that tell what was trained, most telling first: (part of the name, code, what it is, remedy).
_TELLING = (
    ("lora_magnitude_vector", "dora_unsupported", "DoRA magnitudes", "Train again with use_dora=false."),
    ("embed_tokens", "embedding_unsupported", "token embeddings", "Train again without embed_tokens."),
    ("lora_embedding_", "embedding_unsupported", "token embeddings", "Train again without embeddings as targets."),
    ("lm_head", "embedding_unsupported", "the output head", "Train again without lm_head as a target."),
    (".bias", "bias_unsupported", "biases", 'Train again with bias="none" and lora_bias=false.'),
)


@dataclass(frozen=True, slots=True)
class LoraPair:
    """A and B of one module, shapes checked: a [rank, in], b [out, rank]."""

    layer: int
    module: str
    a: TensorEntry
    b: TensorEntry

    @property
    def rank(self) -> int:
        return self.a.shape[0]


def pair_tensors(
    entries: Iterable[TensorEntry], base: BaseShape, max_rank: int
) -> tuple[list[LoraPair], list[Problem]]:
    """Pairs that fit, by layer and module, and a problem for everything else."""
    entries = list(entries)
    sides: dict[tuple[int, str], dict[str, list[TensorEntry]]] = defaultdict(lambda: {"A": [], "B": []})
    unmatched: list[str] = []
    for entry in entries:
        match = _NAME.fullmatch(entry.name)
        if match is None or int(match["layer"]) >= base.num_layers:
            unmatched.append(entry.name)
        else:
            sides[int(match["layer"]), match["module"]][match["side"]].append(entry)
    problems = [*_unmatched(unmatched, len(entries), base), *_dtypes(entries)]
    if not entries:
        remedy = "Save the adapter after training it, with PEFT's save_pretrained."
        problems.append(Problem("tensor_unmatched", _EXAMPLE, "a file without tensors", "LoRA tensors", remedy))
    problems += _unpaired(sides)
    order = sorted(sides, key=lambda key: (key[0], MODULES.index(key[1])))
    both = [LoraPair(*key, sides[key]["A"][0], sides[key]["B"][0]) for key in order if all(sides[key].values())]
    shape_problems = list(_shapes(both, base))
    fitting = [] if shape_problems else both
    return fitting, problems + shape_problems + list(_ranks(fitting, max_rank))


def check_values(file: BinaryIO, entries: Iterable[TensorEntry], pairs: list[LoraPair]) -> list[Problem]:
    """Every value has to be finite, and some pair has to change something."""
    broken: list[str] = []
    zero: set[str] = set()
    for entry in entries:
        if entry.dtype not in ITEM_BYTES:
            continue
        file.seek(entry.start)
        data = file.read(entry.end - entry.start)
        if first_non_finite(data, entry.dtype) is not None:
            broken.append(entry.name)
        if is_all_zero(data):
            zero.add(entry.name)
    problems = []
    if broken:
        remedy = "Training diverged: train again with a lower learning rate, or from a checkpoint before it did."
        problems.append(Problem("non_finite", counted(broken), "NaN or infinite values", "finite numbers", remedy))
    if pairs and all(zero & {pair.a.name, pair.b.name} for pair in pairs):
        remedy = "This is an adapter before its first training step: upload the trained one."
        problems.append(Problem("changes_nothing", pairs[0].b.name, "zeros in every pair", "trained weights", remedy))
    return problems


def _unmatched(names: list[str], total: int, base: BaseShape) -> Iterator[Problem]:
    kinds: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in names:
        kinds[_kind(name)].append(name)
    for (code, what, remedy), members in kinds.items():
        found = f"{len(members)} of {total} tensors that are {what}"
        yield Problem(
            code, counted(members), found, f"names like {_EXAMPLE}, layers 0 to {base.num_layers - 1}", remedy
        )


def _kind(name: str) -> tuple[str, str, str]:
    for part, code, what, remedy in _TELLING:
        if part in name:
            return code, what, remedy
    if "lora_" not in name:
        remedy = "Train again without modules_to_save; save the adapter, not the merged model."
        return "modules_to_save_unsupported", "whole weights, not LoRA pairs", remedy
    remedy = "Train on the linears q, k, v, o, gate, up, down of the base model served here."
    return "tensor_unmatched", "of no module of the base model", remedy


def _dtypes(entries: list[TensorEntry]) -> Iterator[Problem]:
    kinds: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        if entry.dtype not in ITEM_BYTES:
            kinds[entry.dtype].append(entry.name)
    for dtype, names in kinds.items():
        remedy = "Convert the tensors to bfloat16 and save again."
        yield Problem("dtype_unsupported", counted(names), dtype, " or ".join(ITEM_BYTES), remedy)


def _unpaired(sides: dict[tuple[int, str], dict[str, list[TensorEntry]]]) -> Iterator[Problem]:
    flat = [(side, found) for pair in sides.values() for side, found in pair.items()]
    lonely = [
        pair[side][0].name for pair in sides.values() for side, other in ("AB", "BA") if pair[side] and not pair[other]
    ]
    twice = [entry.name for _, found in flat for entry in found[1:]]
    if lonely:
        remedy = "Save the adapter again: A and B of a module belong together."
        yield Problem("tensor_unpaired", counted(lonely), "one of a pair", "lora_A and lora_B", remedy)
    if twice:
        remedy = "Keep the names with the prefix base_model.model. and drop the others."
        yield Problem("tensor_duplicate", counted(twice), "a second tensor for the same module", "one", remedy)


def _shapes(pairs: list[LoraPair], base: BaseShape) -> Iterator[Problem]:
    kinds: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for pair in pairs:
        out, into = base.shapes[pair.module]
        a, b = pair.a.shape, pair.b.shape
        if len(a) != 2 or len(b) != 2 or a[0] < 1 or (a[1], *b) != (into, out, a[0]):
            expected = f"A [rank, {into}] and B [{out}, rank] for {pair.module} of {base.name}"
            kinds[pair.module, f"A {list(a)} and B {list(b)}", expected].append(pair.a.name)
    for (_, found, expected), names in kinds.items():
        remedy = "It was trained on another base model, or its tensors are damaged: train on the one served here."
        yield Problem("tensor_shape_wrong", counted(names), found, expected, remedy)


def _ranks(pairs: list[LoraPair], max_rank: int) -> Iterator[Problem]:
    over = [pair for pair in pairs if pair.rank > max_rank]
    if over:
        highest = max(pair.rank for pair in over)
        remedy = f"Train again with r of at most {max_rank}, in rank_pattern too."
        where = counted([pair.a.name for pair in over])
        yield Problem("rank_over_limit", where, f"rank {highest}", f"at most {max_rank}", remedy)
