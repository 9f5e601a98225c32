"""Mistral: Llama's layout with a sliding window in every layer, where config.json does not switch it off."""

from engine.models.common import output, read_shape, split_mlp, split_qkv
from engine.models.config_json import ConfigJson
from engine.models.plan import Attention, Branch, Layer, Plan
from engine.models.rope import read_rope


def plan(config: ConfigJson) -> Plan:
    config.only("hidden_act", "silu")
    shape = read_shape(config)
    window, rope = config.optional_count("sliding_window", 4096), read_rope(config, shape.head_dim)
    attention = Attention(split_qkv(shape), output(shape), rope, shape.head_dim**-0.5, window)
    mlp = split_mlp(shape.hidden, config.count("intermediate_size"))
    layer = Layer(Branch("input_layernorm", attention), Branch("post_attention_layernorm", mlp))
    return Plan(config.architecture, shape, (layer,) * shape.layers, config.flag("tie_word_embeddings"))
