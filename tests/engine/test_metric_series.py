"""A series is told once: however often an adapter comes, goes and comes back."""

from collections import Counter
from pathlib import Path

from prometheus_client import generate_latest

from engine.protocol import Generate
from tests.engine.test_metrics import Watched
from tests.engine.toy import talkative


def series(watched: Watched) -> Counter[str]:
    text = generate_latest(watched.toy.engine.metrics.registry).decode()
    return Counter(line.rpartition(" ")[0] for line in text.splitlines() if line and not line.startswith("#"))


def test_an_adapter_that_comes_back_has_one_series(tmp_path: Path) -> None:
    watched = Watched(tmp_path, kv_pool_tokens=64, page_size=4, adapter_slots=1)
    for n, name in enumerate("ababaab"):
        (asked,) = talkative(1, 3, adapters=name)
        watched.toy.engine.add(Generate(f"r{n}", "t", "salt", asked.token_ids, asked.sampling, asked.adapter))
        watched.drain()
        told = series(watched)
        assert set(told.values()) == {1}, [name for name, times in told.items() if times > 1]
        slots = [line for line in told if line.startswith("veneer_engine_adapter_resident") and 'tier="slot"' in line]
        assert len(slots) == 1
