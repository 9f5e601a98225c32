"""The architectures that this engine serves, by their names in config.json."""

from collections.abc import Callable, Mapping
from pathlib import Path

from engine.models import gemma, llama, mistral, phi3, qwen2, qwen3
from engine.models.config_json import ConfigJson
from engine.models.plan import Plan
from engine.models.weights import ModelError

FAMILIES: Mapping[str, Callable[[ConfigJson], Plan]] = {
    "Gemma2ForCausalLM": gemma.gemma2_plan,
    "Gemma3ForCausalLM": gemma.gemma3_plan,
    "LlamaForCausalLM": llama.plan,
    "MistralForCausalLM": mistral.plan,
    "Phi3ForCausalLM": phi3.plan,
    "Qwen2ForCausalLM": qwen2.plan,
    "Qwen3ForCausalLM": qwen3.plan,
    "Qwen3MoeForCausalLM": qwen3.moe_plan,
}


def read_plan(folder: Path) -> Plan:
    """Raises ModelError naming the field, its value and what is supported."""
    config = ConfigJson.read(folder)
    family = FAMILIES.get(config.architecture)
    if family is None:
        raise ModelError(f"{folder} is a {config.architecture}; this engine serves {', '.join(sorted(FAMILIES))}")
    return family(config)
