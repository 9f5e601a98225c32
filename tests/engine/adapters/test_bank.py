"""Slots of a bank: what was written to one goes with it, and nothing of the others."""

import pytest
import torch

from engine.adapters.bank import LoraBank, LoraWeights
from engine.model_info import ModelInfo


def test_what_half_a_write_left_goes_with_the_slot() -> None:
    info = ModelInfo("m", 8, 16, 2, 4, 1, 1, 4, {"self_attn.q_proj": (4, 4), "self_attn.v_proj": (4, 4)})
    bank = LoraBank(info, 2, 8, torch.float32, "cpu")
    sound, wrong = (
        LoraWeights(torch.ones(8, 4), torch.ones(4, 8), 2.0),
        LoraWeights(torch.ones(8, 3), torch.ones(4, 8), 2.0),
    )
    bank.write(1, {(0, "self_attn.v_proj"): LoraWeights(torch.ones(3, 4), torch.ones(4, 3), 1.0)})
    with pytest.raises(AssertionError, match="A is"):
        bank.write(0, {(0, "self_attn.q_proj"): sound, (0, "self_attn.v_proj"): sound, (1, "self_attn.v_proj"): wrong})
    bank.clear(0)
    assert bank.slot_bytes(0) == 0
    assert bank.largest_ranks == (3, 0, 0)
    (site,) = info.sites
    assert bank.table(0, site).ranks.tolist() == [[0, 0], [0, 3]]
    assert bank.table(0, site).pointers[0].tolist() == [[0] * 4] * 2
    bank.clear(1)
    assert bank.largest_ranks == (0, 0, 0)
