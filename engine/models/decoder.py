"""A decoder: any family's plan, filled with the weights of a checkpoint, and the forward pass over a step's tokens."""

import torch
from torch import Tensor

from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache
from engine.config import WeightType
from engine.models.ends import AdaptedEmbedding, AdaptedHead, Slots
from engine.models.fused import fuse
from engine.models.layers import AttentionBody, ExpertsBody, LoraLinear, MlpBody, Norm, Ops, Residual, Step
from engine.models.plan import Attention, Branch, Experts, Linear, Mlp, Plan
from engine.models.rope import Angles, Rope
from engine.models.weights import Checkpoint, ModelError
from kernels.cpu.decoder import CpuDecoder
from kernels.packed import Weight
from kernels.paging import AttentionRule, HeadNorms

# What checkpoints carry along though config.json determines it.
DERIVED = ("rotary_emb.inv_freq", "masked_bias")


class Decoder:
    """Weights of one model. Embeddings and head in the dtype of the bank, norms in float32; linears like embeddings, or
    in one byte (`weights`), which never touches the activation that adapters are fed."""

    def __init__(
        self, plan: Plan, checkpoint: Checkpoint, bank: LoraBank, ops: Ops, weights: WeightType = "bf16"
    ) -> None:
        self._plan, self._ops, self._dtype = plan, ops, bank.dtype
        builder = _Builder(plan, checkpoint, bank, ops, weights)
        width = (plan.shape.vocab_size, plan.shape.hidden)
        # As transformers rounds it, in the dtype of the embeddings.
        self._scale = float(torch.tensor(plan.embedding_scale, dtype=bank.dtype))
        self._branches = [branch for index in range(plan.shape.layers) for branch in builder.branches(index)]
        self._norm = builder.norm("model.norm", plan.shape.hidden)
        head = builder.packed("model.embed_tokens.weight" if plan.tied else "lm_head.weight", width)
        embedding: Weight = head if plan.tied else builder.tensor("model.embed_tokens.weight", width)
        self._embedding = AdaptedEmbedding(embedding, bank.embedding)
        self._head = AdaptedHead(head, bank.head, bank.heads)
        self._fused: tuple[KVCache, Ops, CpuDecoder | None] | None = None
        bank.base.add_ends(embedding, head)
        _refuse_leftovers(checkpoint, plan)

    def hidden(self, tokens: Tensor, step: Step, kv: KVCache) -> tuple[Tensor, Tensor]:
        """tokens: int64 [tokens] -> (residual float32 [tokens, hidden], what the last branch adds to it)."""
        residual = self._embedding(tokens, step.segments, self._ops)
        if self._scale != 1.0:
            residual *= self._scale
        fused = self._fused_with(kv)
        if fused is not None:
            return residual, fused.run(residual, step.batch, step.segments)
        delta: Tensor | None = None
        for branch in self._branches:
            delta = branch(residual, delta, step, kv.layers, self._ops, self._dtype)
        assert delta is not None, "a decoder has at least one layer"
        return residual, delta

    def _fused_with(self, kv: KVCache) -> CpuDecoder | None:
        """The branches as one call, where the device has one; made anew where pages or ops are others than before."""
        if self._fused is None or self._fused[0] is not kv or self._fused[1] is not self._ops:
            self._fused = kv, self._ops, fuse(self._branches, kv.layers, self._ops, self._dtype)
        return self._fused[2]

    def normed(self, residual: Tensor, delta: Tensor) -> Tensor:
        """Rows of `hidden` -> [rows, hidden], what the head reads. residual is changed in place."""
        return self._ops.add_norm(residual, delta, self._norm.weight, self._norm.eps, self._dtype)

    def logits(self, residual: Tensor, delta: Tensor, slots: Slots) -> Tensor:
        """Rows of `hidden`, with the adapter slot of each -> float32 [rows, vocab]. residual is changed in place."""
        x = self.normed(residual, delta)
        logits = self._head(x, slots, self._ops).float()
        return logits if self._plan.logit_cap is None else self._ops.soft_cap(logits, self._plan.logit_cap)


class _Builder:
    """Takes a plan's tensors from the checkpoint."""

    def __init__(self, plan: Plan, checkpoint: Checkpoint, bank: LoraBank, ops: Ops, weights: WeightType) -> None:
        self._plan, self._checkpoint, self._bank, self._ops = plan, checkpoint, bank, ops
        self._weights = weights
        self._angles: dict[str, Angles] = {}

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
        return self._checkpoint.take(name, shape, dtype or self._bank.dtype, self._bank.device)

    def packed(self, name: str, shape: tuple[int, ...]) -> Weight:
        return self._ops.pack(self.tensor(name, shape))

    def norm(self, name: str, width: int) -> Norm:
        weight = self.tensor(f"{name}.weight", (width,), torch.float32)
        return Norm(weight + self._plan.norm_offset, self._plan.shape.eps)

    def branches(self, index: int) -> tuple[Residual, Residual]:
        layer = self._plan.layers[index]
        return self._branch(index, layer.attention), self._branch(index, layer.feed_forward)

    def _branch(self, index: int, branch: Branch) -> Residual:
        def norm(name: str) -> Norm:
            return self.norm(f"model.layers.{index}.{name}", self._plan.shape.hidden)

        after = None if branch.after is None else norm(branch.after)
        return Residual(norm(branch.before), self._body(index, branch.body), after)

    def _body(self, index: int, body: Attention | Mlp | Experts) -> AttentionBody | MlpBody | ExpertsBody:
        if isinstance(body, Attention):
            return self._attention(index, body)
        if isinstance(body, Mlp):
            return self._mlp(index, body)
        shape = (len(body.experts), self._plan.shape.hidden)
        router = self.tensor(f"model.layers.{index}.{body.router}.weight", shape)
        experts = [self._mlp(index, expert) for expert in body.experts]
        return ExpertsBody(router, experts, body.chosen, body.renormalises)

    def _attention(self, index: int, body: Attention) -> AttentionBody:
        rule = AttentionRule(body.scale, body.window, body.cap)
        qkv, o = self._linear(index, body.qkv), self._linear(index, body.o)
        return AttentionBody(qkv, o, self._angles_of(body.rope), self._head_norms(index, body.head_norms), rule, index)

    def _head_norms(self, index: int, names: tuple[str, str] | None) -> HeadNorms | None:
        if names is None:
            return None
        q, k = (self.norm(f"model.layers.{index}.{name}", self._plan.shape.head_dim) for name in names)
        return HeadNorms(q.weight, k.weight, q.eps)

    def _angles_of(self, rope: Rope) -> Angles:
        """Layers with the same rope share one table."""
        if repr(rope) not in self._angles:
            self._angles[repr(rope)] = Angles.build(rope, self._bank.device)
        return self._angles[repr(rope)]

    def _mlp(self, index: int, body: Mlp) -> MlpBody:
        return MlpBody(self._linear(index, body.gate_up), self._linear(index, body.down), body.activation)

    def _linear(self, index: int, linear: Linear) -> LoraLinear:
        def stacked(kind: str, shape: tuple[int, ...]) -> Tensor:
            names = [f"model.layers.{index}.{name}.{kind}" for name, _ in linear.modules]
            parts = [self.tensor(name, (out, *shape)) for name, (_, out) in zip(names, linear.modules, strict=True)]
            return parts[0] if len(parts) == 1 else torch.cat(parts)

        bias = stacked("bias", ()) if linear.bias else None
        whole = stacked("weight", (linear.inside,))
        weight = self._ops.pack(whole) if self._weights == "bf16" else self._ops.quantise(whole, self._weights)
        self._bank.base.add_site(index, linear.site, tuple(out for _, out in linear.modules), weight, bias)
        return LoraLinear(weight, bias, self._bank.table(index, linear.site))


def _refuse_leftovers(checkpoint: Checkpoint, plan: Plan) -> None:
    """A tensor that nothing reads would mean that another model is served than the folder holds."""
    derived = {"lm_head.weight"} if plan.tied else set()
    left = sorted(name for name in checkpoint.untaken() - derived if not name.endswith(DERIVED))
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        raise ModelError(f"{checkpoint.folder} holds tensors that {plan.architecture} has no place for: {shown}")
