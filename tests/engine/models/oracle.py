"""Prompts, and what transformers says to them."""

import torch


def prompt(vocabulary: int, length: int, seed: int = 1) -> list[int]:
    return torch.randint(vocabulary, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


@torch.no_grad()
def oracle(model, tokens: list[int], cuts: list[int]) -> torch.Tensor:
    ends = torch.tensor(cuts).cumsum(0) - 1
    return model(torch.tensor([tokens])).logits[0, ends]
