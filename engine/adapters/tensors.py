"""Tensor entries of an adapter's files -> the parts of each module's update, and what is wrong with them.

Problems of one kind are told once, with the first tensor's name and the number of others: an adapter of another base
model is wrong in hundreds of tensors for one reason.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.adapters.base_shape import EMBEDDING, OUTSIDE, BaseShape
from engine.adapters.names import EXAMPLE, Part, place_of
from engine.adapters.problems import Problem, counted
from engine.adapters.safetensors_header import ITEM_BYTES, TensorEntry
from engine.adapters.source import Buffer
from engine.adapters.values import Scan

# Parts that change what a module computes even where B A is zero.
_TELLING_ALONE: tuple[Part, ...] = ("magnitude", "lora_bias", "bias", "saved")
_PAIR: tuple[tuple[Part, Part], ...] = (("A", "B"), ("B", "A"))
_TOGETHER = 8 << 20  # bytes of neighbours that are looked at as one


@dataclass(frozen=True, slots=True)
class ModuleTensors:
    """What the files hold for one module, shapes checked: A [rank, in], B [out, rank], magnitude and biases [out],
    whole weights as the base has them. B is there where A is."""

    layer: int
    module: str
    parts: Mapping[Part, TensorEntry]

    @property
    def rank(self) -> int:
        """0 where there is no pair."""
        return self.parts["A"].shape[0] if "A" in self.parts else 0

    @property
    def named(self) -> str:
        """The tensor to name in messages."""
        return next(iter(self.parts.values())).name

    def key_of(self, part: Part) -> str | None:
        entry = self.parts.get(part)
        return None if entry is None else entry.name


Groups = Mapping[tuple[int, str], Mapping[Part, list[TensorEntry]]]


def group_tensors(
    entries: Iterable[TensorEntry], base: BaseShape, max_rank: int
) -> tuple[list[ModuleTensors], list[Problem]]:
    """Modules whose tensors fit, by layer, and a problem for everything else."""
    entries = list(entries)
    groups: dict[tuple[int, str], dict[Part, list[TensorEntry]]] = defaultdict(lambda: defaultdict(list))
    unmatched: list[str] = []
    for entry in entries:
        place = place_of(entry.name, base)
        if place is None:
            unmatched.append(entry.name)
        else:
            groups[place.layer, place.module][place.part].append(entry)
    problems = [*_unmatched(unmatched, len(entries), base), *_dtypes(entries), *_unpaired(groups)]
    if not any("A" in parts for parts in groups.values()) and not unmatched:
        remedy = "Save the adapter after training it, with PEFT's save_pretrained."
        problems.append(Problem("tensor_unmatched", EXAMPLE, "files without a LoRA pair", "LoRA tensors", remedy))
    whole = [_module(*key, parts) for key, parts in groups.items() if ("A" in parts) == ("B" in parts)]
    whole.sort(key=lambda tensors: _order(tensors, base))
    shape_problems = list(_shapes(whole, base))
    fitting = [] if shape_problems else whole
    return fitting, problems + shape_problems + list(_ranks(fitting, max_rank))


def check_values(read: Callable[[int, int], Buffer], entries: Iterable[TensorEntry], scan: Scan) -> list[Problem]:
    """Every value has to be finite. read: bytes [start, end) of the file. entries: in the order of their bytes.

    Neighbours are looked at as one, and each by itself only where something is wrong."""
    broken = [
        entry.name
        for run in _runs(entries)
        if not scan(read(run[0].start, run[-1].end), run[0].dtype)[0]
        for entry in run
        if not scan(read(entry.start, entry.end), entry.dtype)[0]
    ]
    if not broken:
        return []
    remedy = "Training diverged: train again with a lower learning rate, or from a checkpoint before it did."
    return [Problem("non_finite", counted(broken), "NaN or infinite values", "finite numbers", remedy)]


def check_effect(modules: Sequence[ModuleTensors], is_zero: Callable[[TensorEntry], bool]) -> list[Problem]:
    """Some pair, or something beside the pairs, has to change the base model. is_zero: whether a tensor holds nothing
    but zeros; it is asked until some pair does change the model."""
    pairs = [module for module in modules if "A" in module.parts]
    if not pairs or any(part in module.parts for module in modules for part in _TELLING_ALONE):
        return []
    if not all(is_zero(module.parts["B"]) or is_zero(module.parts["A"]) for module in pairs):
        return []
    remedy = "This is an adapter before its first training step: upload the trained one."
    where = pairs[0].parts["B"].name
    return [Problem("changes_nothing", where, "zeros in every pair", "trained weights", remedy)]


def _runs(entries: Iterable[TensorEntry]) -> list[list[TensorEntry]]:
    """Neighbours of one type that can be judged, _TOGETHER bytes at most unless one alone has more."""
    runs: list[list[TensorEntry]] = []
    for entry in entries:
        if entry.dtype not in ITEM_BYTES:
            continue
        run = runs[-1] if runs else []
        is_next = bool(run) and (run[-1].end, run[-1].dtype) == (entry.start, entry.dtype)
        if is_next and entry.end - run[0].start <= _TOGETHER:
            run.append(entry)
        else:
            runs.append([entry])
    return runs


def _module(layer: int, module: str, parts: Mapping[Part, list[TensorEntry]]) -> ModuleTensors:
    return ModuleTensors(layer, module, {part: found[0] for part, found in parts.items()})


def _order(tensors: ModuleTensors, base: BaseShape) -> tuple[int, int]:
    names = base.outside if tensors.layer == OUTSIDE else base.shapes
    return tensors.layer, list(names).index(tensors.module)


def _unmatched(names: list[str], total: int, base: BaseShape) -> Iterator[Problem]:
    kinds: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in names:
        kinds[_kind(name, base)].append(name)
    for (code, what, remedy), members in kinds.items():
        found = f"{len(members)} of {total} tensors that are {what}"
        expected = f"names like {EXAMPLE}, layers 0 to {base.num_layers - 1}"
        yield Problem(code, counted(members), found, expected, remedy)


def _kind(name: str, base: BaseShape) -> tuple[str, str, str]:
    """Code, what it is, remedy: of a tensor that has no place."""
    if "trainable_tokens" in name or "token_adapter" in name:
        return "trainable_tokens_unsupported", "single trained tokens", "Train again without trainable_token_indices."
    if "lora_" not in name and name.endswith(".bias"):
        remedy = 'Train again with bias="none".'
        return "bias_unsupported", "biases that the base model does not have", remedy
    if "lora_" not in name and "norm" in name:
        remedy = "All adapters of a batch share the norms: train again without norms in modules_to_save."
        return "modules_to_save_unsupported", "norm weights", remedy
    if "lora_" not in name:
        remedy = (
            "Of whole weights only those of lm_head and embed_tokens are served: train again without other "
            "modules_to_save; save the adapter, not the merged model."
        )
        return "modules_to_save_unsupported", "whole weights, not LoRA pairs", remedy
    linears = ", ".join(sorted({module.rsplit(".", 1)[-1] for module in base.shapes}))
    remedy = f"Train on {linears} of the base model served here."
    return "tensor_unmatched", "of no module of the base model", remedy


def _dtypes(entries: list[TensorEntry]) -> Iterator[Problem]:
    kinds: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        if entry.dtype not in ITEM_BYTES:
            kinds[entry.dtype].append(entry.name)
    for dtype, names in kinds.items():
        remedy = "Convert the tensors to bfloat16 and save again."
        yield Problem("dtype_unsupported", counted(names), dtype, " or ".join(ITEM_BYTES), remedy)


def _unpaired(groups: Groups) -> Iterator[Problem]:
    lonely, alone, twice = list[str](), list[str](), list[str]()
    for parts in groups.values():
        for side, other in _PAIR:
            if side in parts and other not in parts:
                lonely.append(parts[side][0].name)
        if not {"A", "B"} & parts.keys():
            alone += [found[0].name for part, found in parts.items() if part in ("magnitude", "lora_bias")]
        twice += [entry.name for found in parts.values() for entry in found[1:]]
    if lonely:
        remedy = "Save the adapter again: A and B of a module belong together."
        yield Problem("tensor_unpaired", counted(lonely), "one of a pair", "lora_A and lora_B", remedy)
    if alone:
        remedy = "Save the adapter again: a magnitude or bias belongs to a pair."
        yield Problem("tensor_unpaired", counted(alone), "no pair beside it", "lora_A and lora_B", remedy)
    if twice:
        remedy = "Keep the names with the prefix base_model.model. and drop the others."
        yield Problem("tensor_duplicate", counted(twice), "a second tensor for the same part", "one", remedy)


def _shapes(modules: list[ModuleTensors], base: BaseShape) -> Iterator[Problem]:
    kinds: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for tensors in modules:
        for found, expected, name in _misfits(tensors, base):
            kinds[tensors.module, found, expected, _remedy(tensors)].append(name)
    for (_, found, expected, remedy), names in kinds.items():
        yield Problem("tensor_shape_wrong", counted(names), found, expected, remedy)


def _misfits(tensors: ModuleTensors, base: BaseShape) -> Iterator[tuple[str, str, str]]:
    """(found, expected, name) of a pair, and of each other tensor."""
    shape = base.shape_of(tensors.layer, tensors.module)
    assert shape is not None, f"{tensors.module} was matched"
    out, into = shape
    named = f"for {tensors.module} of {base.name}"
    if "A" in tensors.parts:
        a, b = tensors.parts["A"].shape, tensors.parts["B"].shape
        if len(a) != 2 or len(b) != 2 or a[0] < 1 or (a[1], *b) != (into, out, a[0]):
            expected = f"A [rank, {into}] and B [{out}, rank] {named}"
            yield f"A {list(a)} and B {list(b)}", expected, tensors.parts["A"].name
    whole = (into, out) if tensors.module == EMBEDDING else (out, into)
    for part, entry in tensors.parts.items():
        wanted = whole if part in ("saved", "base") else (out,)
        if part not in ("A", "B") and entry.shape != wanted:
            yield f"{list(entry.shape)}", f"{list(wanted)} {named}", entry.name


def _remedy(tensors: ModuleTensors) -> str:
    if tensors.layer == OUTSIDE:
        return (
            "Its vocabulary is not that of the base model: train without resize_token_embeddings and without added "
            "tokens, on the base model served here."
        )
    return "It was trained on another base model, or its tensors are damaged: train on the one served here."


def _ranks(modules: list[ModuleTensors], max_rank: int) -> Iterator[Problem]:
    over = [tensors for tensors in modules if tensors.rank > max_rank]
    if over:
        highest = max(tensors.rank for tensors in over)
        remedy = f"Train again with r of at most {max_rank}, in rank_pattern too."
        where = counted([tensors.parts["A"].name for tensors in over])
        yield Problem("rank_over_limit", where, f"rank {highest}", f"at most {max_rank}", remedy)
