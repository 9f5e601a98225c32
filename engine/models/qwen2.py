"""Qwen 2 and 2.5: Llama's layout with biases on q, k and v, and windows in the upper layers by choice."""

from engine.models.common import output, qwen_windows, read_shape, split_mlp, split_qkv
from engine.models.config_json import ConfigJson
from engine.models.plan import Attention, Branch, Layer, Plan
from engine.models.rope import read_rope


def plan(config: ConfigJson) -> Plan:
    config.only("hidden_act", "silu")
    shape = read_shape(config)
    rope, mlp = read_rope(config, shape.head_dim), split_mlp(shape.hidden, config.count("intermediate_size"))

    def layer(window: int | None) -> Layer:
        attention = Attention(split_qkv(shape, bias=True), output(shape), rope, shape.head_dim**-0.5, window)
        return Layer(Branch("input_layernorm", attention), Branch("post_attention_layernorm", mlp))

    layers = tuple(map(layer, qwen_windows(config, shape.layers)))
    return Plan(config.architecture, shape, layers, config.flag("tie_word_embeddings"))
