"""Qwen 3, dense and mixture of experts: RMS norms on every q and k head; experts of their own width, by a router."""

from engine.models.common import output, qwen_windows, read_shape, split_mlp, split_qkv
from engine.models.config_json import ConfigJson
from engine.models.plan import Attention, Branch, Experts, Layer, Mlp, Plan, Shape
from engine.models.rope import read_rope


def plan(config: ConfigJson) -> Plan:
    shape = read_shape(config, head_dim=128)
    mlp = split_mlp(shape.hidden, config.count("intermediate_size"))
    return _plan(config, shape, mlp, qwen_windows(config, shape.layers))


def moe_plan(config: ConfigJson) -> Plan:
    config.only("decoder_sparse_step", 1)
    config.only("mlp_only_layers", [])
    config.only("use_sliding_window", False)
    shape = read_shape(config)
    width = config.count("moe_intermediate_size", 768)
    count = config.count("num_experts", config.get("num_local_experts") or 128)
    experts = tuple(split_mlp(shape.hidden, width, prefix=f"mlp.experts.{i}") for i in range(count))
    chosen = config.count("num_experts_per_tok", 8)
    if chosen > count:
        raise config.wrong("num_experts_per_tok", f"there are {count} experts")
    body = Experts("mlp.gate", experts, chosen, config.flag("norm_topk_prob"))
    return _plan(config, shape, body, [None] * shape.layers)


def _plan(config: ConfigJson, shape: Shape, body: Mlp | Experts, windows: list[int | None]) -> Plan:
    config.only("hidden_act", "silu")
    bias, rope = config.flag("attention_bias"), read_rope(config, shape.head_dim)
    qkv, o = split_qkv(shape, bias=bias), output(shape, bias=bias)
    norms = ("self_attn.q_norm", "self_attn.k_norm")

    def layer(window: int | None) -> Layer:
        attention = Attention(qkv, o, rope, shape.head_dim**-0.5, window, head_norms=norms)
        return Layer(Branch("input_layernorm", attention), Branch("post_attention_layernorm", body))

    return Plan(config.architecture, shape, tuple(map(layer, windows)), config.flag("tie_word_embeddings"))
