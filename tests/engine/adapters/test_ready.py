"""Weights as a slot wants them: the numbers of the file, rounded as torch rounds them, and none of its memory."""

import pytest
import torch

from engine.adapters.bank import AdapterWeights, LoraWeights
from engine.adapters.base_shape import EMBEDDING, OUTSIDE
from engine.adapters.load import ready_for

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("wanted", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stored", DTYPES)
def test_every_number_arrives_in_its_place(stored: torch.dtype, wanted: torch.dtype) -> None:
    torch.manual_seed(0)
    weights = AdapterWeights()
    for layer, rank in enumerate((1, 3, 8, 17, 64)):
        a, b = torch.randn(rank, 48).to(stored), torch.randn(80, rank).to(stored)
        weights[layer, "self_attn.q_proj"] = LoraWeights(a, b, 0.5, torch.randn(80), None)
    weights[OUTSIDE, EMBEDDING] = LoraWeights(torch.randn(3, 99).to(stored), torch.randn(48, 3).to(stored), 2.0)
    expected = {place: (lora.a.to(wanted, copy=True), lora.b.to(wanted, copy=True)) for place, lora in weights.items()}
    ready = ready_for(weights, wanted)
    for lora in weights.values():
        lora.a.fill_(torch.nan)
        lora.b.fill_(torch.nan)
    assert list(ready) == list(weights)
    for place, (a, b) in expected.items():
        lora = ready[place]
        assert torch.equal(lora.a, a)
        assert torch.equal(lora.b, b)
        assert lora.b.t().is_contiguous()
        assert (lora.a.t() if place[0] == OUTSIDE else lora.a).is_contiguous()
        assert lora.scaling == weights[place].scaling
