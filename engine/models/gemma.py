"""Gemma 2 and 3 (text): norms around both branches, scaled embeddings, windows in most layers.

Gemma 2 caps scores and logits softly. Gemma 3 norms q and k heads instead, and turns windowed layers by a base of
their own.
"""

from engine.models.common import output, read_shape, split_mlp, split_qkv, windows_of
from engine.models.config_json import ConfigJson
from engine.models.plan import Attention, Branch, Layer, Plan, Shape
from engine.models.rope import Rope, read_rope

HEAD_DIM = 256


def gemma2_plan(config: ConfigJson) -> Plan:
    shape = read_shape(config, head_dim=HEAD_DIM)
    rope = read_rope(config, shape.head_dim)
    cap = config.optional_number("attn_logit_softcapping", 50.0)
    layers = [_layer(config, shape, rope, window, cap, None) for window in _windows(config, shape.layers, 2)]
    return _plan(config, shape, layers, config.optional_number("final_logit_softcapping", 30.0))


def gemma3_plan(config: ConfigJson) -> Plan:
    config.only("attn_logit_softcapping", None)
    shape = read_shape(config, head_dim=HEAD_DIM)
    everywhere, nearby = _ropes(config, shape.head_dim)
    norms = ("self_attn.q_norm", "self_attn.k_norm")
    pattern = config.count("sliding_window_pattern", 6)
    layers = [
        _layer(config, shape, everywhere if window is None else nearby, window, None, norms)
        for window in _windows(config, shape.layers, pattern)
    ]
    return _plan(config, shape, layers, config.optional_number("final_logit_softcapping"))


def _ropes(config: ConfigJson, head_dim: int) -> tuple[Rope, Rope]:
    """Of full and of windowed layers; older files scale only the former, and name the latter's base apart."""
    if isinstance(config.get("rope_parameters"), dict) and "full_attention" in config.get("rope_parameters"):
        nearby = read_rope(config, head_dim, layer_type="sliding_attention")
        return read_rope(config, head_dim, layer_type="full_attention", default_theta=1e6), nearby
    everywhere = read_rope(config, head_dim, default_theta=1e6)
    base = config.number("rope_local_base_freq", 1e4)
    return everywhere, Rope(base, "default", everywhere.width, everywhere.context_len, everywhere.context_len, {})


def _windows(config: ConfigJson, layers: int, pattern: int) -> list[int | None]:
    """Every `pattern`-th layer sees all keys, where config.json has no list of its own."""
    kinds = config.get("layer_types")
    if kinds is None:
        kinds = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(layers)]
    return windows_of(config, kinds, layers, config.optional_count("sliding_window", 4096))


def _layer(
    config: ConfigJson, shape: Shape, rope: Rope, window: int | None, cap: float | None, norms: tuple[str, str] | None
) -> Layer:
    bias, scale = config.flag("attention_bias"), config.number("query_pre_attn_scalar", 256) ** -0.5
    attention = Attention(split_qkv(shape, bias=bias), output(shape, bias=bias), rope, scale, window, cap, norms)
    mlp = split_mlp(shape.hidden, config.count("intermediate_size"), activation="gelu_tanh")
    return Layer(
        Branch("input_layernorm", attention, "post_attention_layernorm"),
        Branch("pre_feedforward_layernorm", mlp, "post_feedforward_layernorm"),
    )


def _plan(config: ConfigJson, shape: Shape, layers: list[Layer], logit_cap: float | None) -> Plan:
    config.only("hidden_activation", "gelu_pytorch_tanh")
    config.only("use_bidirectional_attention", False)
    tied = config.flag("tie_word_embeddings", True)
    return Plan(config.architecture, shape, tuple(layers), tied, 1.0, shape.hidden**0.5, logit_cap)
