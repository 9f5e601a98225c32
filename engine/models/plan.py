"""What a family's file says of a model, as data: its parts by their names in the checkpoint, and how they differ.

`engine.models.decoder` builds any such plan. Names in a layer are those below `model.layers.N.`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.model_info import ModelInfo
from engine.models.rope import Rope
from kernels.paging import Activation


@dataclass(frozen=True)
class Linear:
    """One GEMM: modules (name, out_features) that read the same activation, their rows one below the other."""

    modules: tuple[tuple[str, int], ...]
    inside: int
    bias: bool = False

    @property
    def site(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.modules)


@dataclass(frozen=True)
class Attention:
    """qkv: rows of all q heads, then k, then v. head_norms: names of the RMS norms of q and k heads, or None.

    window: keys that a token sees, itself included, or None. cap: soft cap of the scores, or None.
    """

    qkv: Linear
    o: Linear
    rope: Rope
    scale: float
    window: int | None = None
    cap: float | None = None
    head_norms: tuple[str, str] | None = None


@dataclass(frozen=True)
class Mlp:
    """down(activation(gate) * up); gate_up: gate rows first."""

    gate_up: Linear
    down: Linear
    activation: Activation = "silu"


@dataclass(frozen=True)
class Experts:
    """`chosen` of the experts for each token, by the softmax of the router. renormalises: their weights sum to 1."""

    router: str
    experts: tuple[Mlp, ...]
    chosen: int
    renormalises: bool


@dataclass(frozen=True)
class Branch:
    """x + after(body(before(x))): names of RMS norms; after is None where the body's output is added as it is."""

    before: str
    body: Attention | Mlp | Experts
    after: str | None = None


@dataclass(frozen=True)
class Layer:
    attention: Branch
    feed_forward: Branch

    @property
    def linears(self) -> Iterator[Linear]:
        assert isinstance(self.attention.body, Attention)
        yield from (self.attention.body.qkv, self.attention.body.o)
        body = self.feed_forward.body
        assert not isinstance(body, Attention)
        for mlp in body.experts if isinstance(body, Experts) else (body,):
            yield from (mlp.gate_up, mlp.down)


@dataclass(frozen=True)
class Shape:
    """Sizes that every decoder states."""

    vocab_size: int
    context_len: int
    layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    eps: float


@dataclass(frozen=True)
class Plan:
    """layers: one for each layer. tied: the output head is the embedding.

    norm_offset: what is added to every norm's weights. embedding_scale: what embeddings are multiplied by.
    logit_cap: soft cap of the logits, or None.
    """

    architecture: str
    shape: Shape
    layers: tuple[Layer, ...]
    tied: bool
    norm_offset: float = 0.0
    embedding_scale: float = 1.0
    logit_cap: float | None = None

    @property
    def switch_len(self) -> int | None:
        """See `Rope.switch_len`; the same for all layers that have one."""
        bodies = (layer.attention.body for layer in self.layers)
        lengths = {body.rope.switch_len for body in bodies if isinstance(body, Attention)}
        return next(iter(lengths - {None}), None)

    @property
    def window(self) -> int | None:
        """See `ModelInfo.window`: the widest, where all layers have one."""
        bodies = [layer.attention.body for layer in self.layers]
        windows = [body.window for body in bodies if isinstance(body, Attention) and body.window is not None]
        return max(windows) if len(windows) == len(bodies) else None

    @property
    def is_capturable(self) -> bool:
        """No step's launches depend on numbers that only the device knows, as a router's choice does."""
        return not any(isinstance(layer.feed_forward.body, Experts) for layer in self.layers)

    def info(self, name: str) -> ModelInfo:
        linears = list(self.layers[0].linears)
        assert all(list(layer.linears) == linears for layer in self.layers), "layers differ in their linears"
        shape = self.shape
        return ModelInfo(
            name=name,
            vocab_size=shape.vocab_size,
            context_len=shape.context_len,
            num_layers=shape.layers,
            hidden=shape.hidden,
            q_heads=shape.q_heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            modules={name: (out, linear.inside) for linear in linears for name, out in linear.modules},
            fused=tuple(linear.site for linear in linears),
            switch_len=self.switch_len,
            window=self.window,
        )
