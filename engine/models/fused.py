"""A decoder's branches handed to the CPU's kernels as a whole."""

from collections.abc import Sequence

import torch

from engine.models.layers import AttentionBody, ExpertsBody, LoraLinear, MlpBody, Norm, Ops, Residual
from kernels.cpu.decoder import AttentionParts, BranchParts, CpuDecoder, LinearParts, MlpParts, NormParts
from kernels.cpu.ops import CpuOps
from kernels.paging import PageStore


def fuse(branches: Sequence[Residual], layers: Sequence[PageStore], ops: Ops, dtype: torch.dtype) -> CpuDecoder | None:
    """None where the device has no such call, or a token's way through the branches depends on the token (experts)."""
    if not isinstance(ops, CpuOps):
        return None
    bodies = [_body(branch.body, layers) for branch in branches if not isinstance(branch.body, ExpertsBody)]
    if len(bodies) < len(branches):
        return None
    parts = [
        BranchParts(_norm(branch.before), body, None if branch.after is None else _norm(branch.after))
        for branch, body in zip(branches, bodies, strict=True)
    ]
    return CpuDecoder(ops, parts, dtype)


def _norm(norm: Norm) -> NormParts:
    return NormParts(norm.weight, norm.eps)


def _linear(linear: LoraLinear) -> LinearParts:
    return LinearParts(linear.weight, linear.bias, linear.table)


def _body(body: AttentionBody | MlpBody, layers: Sequence[PageStore]) -> AttentionParts | MlpParts:
    if isinstance(body, MlpBody):
        return MlpParts(_linear(body.gate_up), _linear(body.down), body.activation)
    qkv, o, angles = _linear(body.qkv), _linear(body.o), body.angles
    return AttentionParts(qkv, o, angles.cos, angles.sin, body.norms, body.rule, layers[body.pages_of])
