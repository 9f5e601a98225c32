"""Llama 2, 3 and all that share their layout: grouped-query attention, SiLU-gated feed-forward, biases by choice."""

from engine.models.common import output, read_shape, split_mlp, split_qkv
from engine.models.config_json import ConfigJson
from engine.models.plan import Attention, Branch, Layer, Plan
from engine.models.rope import read_rope


def plan(config: ConfigJson) -> Plan:
    config.only("hidden_act", "silu")
    shape = read_shape(config)
    bias, rope = config.flag("attention_bias"), read_rope(config, shape.head_dim)
    attention = Attention(split_qkv(shape, bias=bias), output(shape, bias=bias), rope, shape.head_dim**-0.5)
    mlp = split_mlp(shape.hidden, config.count("intermediate_size"), bias=config.flag("mlp_bias"))
    layer = Layer(Branch("input_layernorm", attention), Branch("post_attention_layernorm", mlp))
    return Plan(config.architecture, shape, (layer,) * shape.layers, config.flag("tie_word_embeddings"))
