"""Phi-3 and 3.5: q, k, v and gate, up are one matrix each in the checkpoint; heads may turn in part; LongRoPE."""

from engine.models.common import output, read_shape
from engine.models.config_json import ConfigJson
from engine.models.plan import Attention, Branch, Layer, Linear, Mlp, Plan
from engine.models.rope import read_rope


def plan(config: ConfigJson) -> Plan:
    config.only("hidden_act", "silu")
    config.only("attention_bias", False)
    shape, ffn = read_shape(config, eps=1e-5), config.count("intermediate_size")
    heads = shape.q_heads + 2 * shape.kv_heads
    qkv = Linear((("self_attn.qkv_proj", heads * shape.head_dim),), shape.hidden)
    rope = read_rope(config, shape.head_dim)
    attention = Attention(qkv, output(shape), rope, shape.head_dim**-0.5, config.optional_count("sliding_window"))
    gate_up = Linear((("mlp.gate_up_proj", 2 * ffn),), shape.hidden)
    mlp = Mlp(gate_up, Linear((("mlp.down_proj", shape.hidden),), ffn))
    layer = Layer(Branch("input_layernorm", attention), Branch("post_attention_layernorm", mlp))
    return Plan(config.architecture, shape, (layer,) * shape.layers, config.flag("tie_word_embeddings"))
