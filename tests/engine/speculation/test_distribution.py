"""Drafts do not bend the odds: what is sampled behind them has the distribution of the model."""

from collections import Counter
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path

import pytest
import torch

from engine.protocol import Generate, Sampling
from engine.scheduling.sequence import Sequence
from engine.speculation.account import Account
from engine.speculation.proposer import Ask, Outlook, Tokens
from engine.speculation.speculator import Speculator
from tests.engine.speculation.guess import answered
from tests.engine.toy import BASE, VOCAB, toy_engine, toy_logits

PROMPT, SEEDS, TEMPERATURE = [5, 6, 7], 2000, 4.0
# Of chi-square with 39 degrees of freedom, exceeded once in ten thousand; the seeds are fixed.
LIMIT = 82.1


@dataclass
class Favourite:
    """Always proposes the same token."""

    token: int

    def outlook(self, sequence: Sequence) -> Outlook:
        return Outlook(1)

    def propose(self, asks: Several[Ask]) -> list[Tokens]:
        return [(self.token,) for _ in asks]

    def forget(self, sequence: Sequence) -> None: ...


def odds(tokens: list[int]) -> torch.Tensor:
    return torch.softmax(toy_logits(tokens, BASE).double() / TEMPERATURE, dim=0)


@cache
def odds_of_second_and_third() -> tuple[torch.Tensor, torch.Tensor]:
    second, third = torch.zeros(VOCAB, dtype=torch.float64), torch.zeros(VOCAB, dtype=torch.float64)
    for first, likely in enumerate(odds(PROMPT)):
        after = odds([*PROMPT, first])
        second += likely * after
        for token, then in enumerate(after):
            third += likely * then * odds([*PROMPT, first, token])
    return second, third


@pytest.mark.parametrize("favourite", [3, 17])
def test_drafted_tokens_and_those_behind_them_have_the_model_s_odds(tmp_path: Path, favourite: int) -> None:
    toy = toy_engine(tmp_path, max_running=8, step_tokens=64, max_waiting=SEEDS, max_waiting_per_tenant=SEEDS)
    toy.engine._speculator = Speculator(
        Favourite(favourite),
        choose=lambda options, sequences, costs: [option.longest for option in options],
        account=Account(inf),
    )
    requests = [
        Generate(f"r{seed}", "t", "salt", tuple(PROMPT), Sampling(3, TEMPERATURE, seed=seed, ignore_eos=True))
        for seed in range(SEEDS)
    ]
    told = answered(toy, requests, is_checked=False)
    accepted = toy.engine.metrics.registry.get_sample_value(
        "veneer_engine_draft_tokens_total", {"adapter": "base", "outcome": "accepted"}
    )
    seconds = Counter(answer.tokens[1] for answer in told.values())
    assert accepted == seconds[favourite] > 0
    thirds = Counter(answer.tokens[2] for answer in told.values())
    for counts, expected in zip((seconds, thirds), odds_of_second_and_third(), strict=True):
        off = sum(
            (counts[token] - SEEDS * likely) ** 2 / (SEEDS * likely) for token, likely in enumerate(expected.tolist())
        )
        assert off < LIMIT
    toy.engine.shutdown()
    toy.journal.close()
