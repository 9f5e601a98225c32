"""adapter_config.json -> `LoraSettings`, or every key that asks for something we would not apply.

What a module's tensors show (which modules, what rank) is taken from the tensors; the config decides scaling, and may
ask for methods that change the computation. Keys at their inert value pass, whatever their name: PEFT adds keys in
every release. A key set to something that we do not know is refused rather than ignored.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.adapters.base_shape import EMBEDDING, HEAD, BaseShape, module_path
from engine.adapters.patterns import MAX_KEYS, PatternError, Patterns
from engine.adapters.problems import Problem, shown
from engine.adapters.safetensors_header import refuse_constant, unique_keys

CONFIG_FILE = "adapter_config.json"

# Which modules were trained shows in the tensors; the rest matters to training, or names a version.
_NO_EFFECT = {
    "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "lora_dropout", "inference_mode",
    "peft_version", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "velora_config", "megatron_core",
    "qalora_group_size", "ensure_weight_tying", "runtime_config",
}  # fmt: skip
_READ_BELOW = {
    "peft_type", "task_type", "base_model_name_or_path", "revision", "r", "lora_alpha", "use_rslora", "rank_pattern",
    "alpha_pattern", "bias", "init_lora_weights", "auto_mapping", "use_dora", "lora_bias", "modules_to_save",
    "alora_invocation_tokens",
}  # fmt: skip
_SAVED_REMEDIES = {
    True: "All adapters of a batch share the norms: train again without norms in modules_to_save.",
    False: "Only lm_head and embed_tokens can be trained whole: train again without the others in modules_to_save.",
}
MAX_INVOCATION_TOKENS = 256
_PLAIN_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")
_RETRAIN = "Train again without it."
_REMEDIES = {
    "fan_in_fan_out": "The base model's linears are not transposed: set fan_in_fan_out to false.",
    "trainable_token_indices": "Trained token embeddings are not served here: train again without them.",
    "layer_replication": "The base model is served with the layers it has: train again without layer_replication.",
    "target_parameters": "Only linear modules are served: train again with target_modules.",
    "auto_map": "Code from an upload is never run: remove auto_map.",
    "trust_remote_code": "Code from an upload is never run: remove trust_remote_code.",
}


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """What a config decides. rank and alpha of a module: the first pattern's that matches it.

    dora, lora_bias: whether pairs come with magnitudes, with a bias of B. saved: of `embed_tokens` and `lm_head`, the
    ones that were trained whole. invocation: the tokens that switch an activated LoRA on; empty: it is always on.
    """

    rank: int
    alpha: float
    rslora: bool
    ranks: Mapping[str, int]
    alphas: Mapping[str, float]
    rank_patterns: Patterns
    alpha_patterns: Patterns
    dora: bool = False
    lora_bias: bool = False
    saved: frozenset[str] = frozenset()
    invocation: tuple[int, ...] = ()

    def rank_of(self, layer: int, module: str) -> int:
        key = self.rank_patterns.first(module_path(layer, module))
        return self.rank if key is None else self.ranks[key]

    def scaling_of(self, layer: int, module: str) -> float:
        """alpha / rank, or alpha / sqrt(rank) for rsLoRA (Kalajdzievski 2023)."""
        key = self.alpha_patterns.first(module_path(layer, module))
        alpha = self.alpha if key is None else self.alphas[key]
        rank = self.rank_of(layer, module)
        return alpha / (math.sqrt(rank) if self.rslora else rank)


def read_config(text: bytes, base: BaseShape) -> tuple[LoraSettings | None, list[Problem]]:
    """Settings are None where problems keep them from being read."""
    try:
        config = json.loads(text.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=refuse_constant)
        if not isinstance(config, dict):
            raise ValueError("it is not an object")
    except (ValueError, RecursionError) as error:
        remedy = "Upload the adapter_config.json that PEFT's save_pretrained wrote."
        return None, [Problem("config_invalid", CONFIG_FILE, shown(str(error)), "a JSON object", remedy)]
    problems = [*_method(config), *_base(config, base), *_unapplied(config)]
    settings, more = _settings(config, base)
    return settings, problems + more


def _at(key: str) -> str:
    return f"{CONFIG_FILE}: {shown(key)}"


def _unsupported(key: str, value: object, expected: str, remedy: str = _RETRAIN) -> Problem:
    return Problem("config_unsupported", _at(key), shown(value), expected, remedy)


def _method(config: dict[str, Any]) -> list[Problem]:
    problems = []
    if config.get("peft_type") != "LORA":
        problems.append(_unsupported("peft_type", config.get("peft_type"), "LORA", "Only LoRA adapters are served."))
    if config.get("task_type") not in (None, "CAUSAL_LM"):
        remedy = "Only adapters that generate text are served."
        problems.append(_unsupported("task_type", config["task_type"], "CAUSAL_LM", remedy))
    if config.get("bias") not in (None, "none", "lora_only", "all"):
        expected = "none, lora_only or all"
        problems.append(_unsupported("bias", config["bias"], expected, 'Train again with bias="none".'))
    if not any(config.get("init_lora_weights") is start for start in _PLAIN_STARTS[:3]):
        problems += _start(config["init_lora_weights"])
    return problems


def _start(value: object) -> list[Problem]:
    """PiSSA, OLoRA, CorDA, LoftQ and LoRA-GA train against a changed base; on the plain one their tensors are wrong."""
    if value in _PLAIN_STARTS[3:]:
        return []
    remedy = "Convert it to a plain LoRA: save_pretrained(..., path_initial_model_for_weight_conversion=...)."
    return [_unsupported("init_lora_weights", value, "a start that leaves the base model as it is", remedy)]


def _base(config: dict[str, Any], base: BaseShape) -> list[Problem]:
    problems = []
    name, revision, mapping = (config.get(key) for key in ("base_model_name_or_path", "revision", "auto_mapping"))
    if name and not (isinstance(name, str) and base.is_named(name)):
        remedy = "Train on the base model served here; if it is the same under another name, put this name there."
        where = _at("base_model_name_or_path")
        problems.append(Problem("base_model_mismatch", where, shown(name), base.name, remedy))
    if revision not in (None, "", "main"):
        remedy = "If it was trained on the same weights, set revision to null."
        problems.append(_unsupported("revision", revision, "null or main", remedy))
    library = mapping.get("parent_library") if isinstance(mapping, dict) else mapping
    if mapping and not (isinstance(library, str) and library.startswith("transformers.models.")):
        remedy = "Code from an upload is never run: set auto_mapping to null."
        problems.append(_unsupported("auto_mapping", mapping, "null or a class of transformers", remedy))
    return problems


def _unapplied(config: dict[str, Any]) -> list[Problem]:
    return [
        _unsupported(key, value, "null, false or empty", _REMEDIES.get(key, "This key is not applied here: unset it."))
        for key, value in config.items()
        if value and key not in _NO_EFFECT and key not in _READ_BELOW
    ]


def _settings(config: dict[str, Any], base: BaseShape) -> tuple[LoraSettings | None, list[Problem]]:
    problems: list[Problem] = []
    rank, alpha = config.get("r", 8), config.get("lora_alpha", 8)
    if not _is_rank(rank):
        problems.append(_invalid("r", rank, "a whole number of at least 1"))
    if not _is_alpha(alpha):
        problems.append(_invalid("lora_alpha", alpha, "a finite number other than 0"))
    rslora, dora, lora_bias = (_flag(config, key, problems) for key in ("use_rslora", "use_dora", "lora_bias"))
    saved, invocation = _saved(config, problems), _invocation(config, base, problems)
    ranks, rank_patterns = _pattern(config, "rank_pattern", problems)
    alphas, alpha_patterns = _pattern(config, "alpha_pattern", problems)
    if dora and invocation:
        remedy = "PEFT does not combine them: train again with use_dora=false."
        problems.append(_unsupported("use_dora", True, "false beside alora_invocation_tokens", remedy))
    if problems or rank_patterns is None or alpha_patterns is None:
        return None, problems
    patterns = (ranks, alphas, rank_patterns, alpha_patterns)
    return LoraSettings(rank, alpha, rslora, *patterns, dora, lora_bias, saved, invocation), []


def _flag(config: dict[str, Any], key: str, problems: list[Problem]) -> bool:
    value = config.get(key) or False
    if not isinstance(value, bool):
        problems.append(_invalid(key, value, "true or false"))
    return value is True


def _saved(config: dict[str, Any], problems: list[Problem]) -> frozenset[str]:
    value = config.get("modules_to_save") or []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        problems.append(_invalid("modules_to_save", value, "a list of module names"))
        return frozenset()
    names = {name.rsplit(".", 1)[-1] for name in value}
    others = sorted(names - {EMBEDDING, HEAD})
    if others:
        remedy = _SAVED_REMEDIES[any("norm" in name for name in others)]
        problems.append(_unsupported("modules_to_save", value, f"{EMBEDDING} or {HEAD}", remedy))
    return frozenset(names)


def _invocation(config: dict[str, Any], base: BaseShape, problems: list[Problem]) -> tuple[int, ...]:
    value = config.get("alora_invocation_tokens") or []
    vocabulary = base.outside[HEAD][0] if HEAD in base.outside else 2**31
    is_list = isinstance(value, list) and len(value) <= MAX_INVOCATION_TOKENS
    if not is_list or not all(type(token) is int and 0 <= token < vocabulary for token in value):
        expected = f"at most {MAX_INVOCATION_TOKENS} token ids below {vocabulary}"
        problems.append(_invalid("alora_invocation_tokens", value, expected))
        return ()
    return tuple(value)


def _pattern(config: dict[str, Any], key: str, problems: list[Problem]) -> tuple[dict[str, Any], Patterns | None]:
    value = config.get(key) or {}
    is_valid, expected = (_is_rank, "ranks") if key == "rank_pattern" else (_is_alpha, "finite numbers other than 0")
    if not isinstance(value, dict) or len(value) > MAX_KEYS:
        problems.append(_invalid(key, value, f"an object of at most {MAX_KEYS} module patterns"))
        return {}, None
    wrong = {name: each for name, each in value.items() if not is_valid(each)}
    if wrong:
        problems.append(_invalid(key, wrong, f"module patterns with {expected}"))
    try:
        return value, Patterns(value)
    except PatternError as error:
        problems.append(_invalid(key, str(error), "patterns as PEFT matches them, simple enough to evaluate"))
        return {}, None


def _invalid(key: str, value: object, expected: str) -> Problem:
    return Problem("config_invalid", _at(key), shown(value), expected, "Upload the file that PEFT wrote, unchanged.")


def _is_rank(value: object) -> bool:
    return type(value) is int and 1 <= value < 2**31


def _is_alpha(value: object) -> bool:
    return type(value) in (int, float) and 1e-6 <= abs(value) <= 1e6  # type: ignore[arg-type]  # type() narrows nothing
