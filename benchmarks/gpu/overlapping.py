"""The whole engine's step loop on the device, with steps that overlap and without: same tokens, and what it gains."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu.device import Device
from benchmarks.gpu.report import Line
from benchmarks.gpu.whole import PAGE, Machine
from engine.adapters.host_cache import Weights
from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.text_stream import TextStream
from engine.metering.journal import Journal
from engine.models.runner import Runner
from engine.protocol import AdapterRef, Generate, Sampling, TokenEvent
from engine.scheduling.admission import Limits


class Letters:
    """Texts whose every token is a letter."""

    eos_ids = frozenset[int]()

    def stream(self, stop: tuple[str, ...] = (), *, include_stop: bool = False) -> TextStream:
        return TextStream(lambda ids: "a" * len(ids), stop, include_stop=include_stop)

    def piece(self, token: int) -> bytes:
        return b"a"


def steps(device: Device) -> Iterator[Line]:
    """Decoding of many short sequences, where the host's share of a step is largest."""
    streams, count = (64, 128) if device.is_real else (2, 4)
    machine = Machine(device, 1, 4200 if device.is_real else 16)
    runner = Runner(machine.info, machine.model, machine.bank, machine.kv, device.ops, machine.graphs)
    said, took = dict[bool, dict[str, list[int]]](), dict[bool, float]()
    for overlaps in (False, True):
        _answers(runner, streams, count, overlaps=overlaps)  # recordings are made, kernels compiled
        said[overlaps], took[overlaps] = _answers(runner, streams, count, overlaps=overlaps)
    assert said[True] == said[False], "overlapping steps say something else"
    for overlaps, name in ((False, "one after the other"), (True, "overlapping")):
        what = f"engine, {streams} streams, steps {name} ({streams * count / took[overlaps]:.0f} tok/s)"
        yield Line(what, took[overlaps] / count * 1e3, "ms")


def _answers(runner: Runner, streams: int, count: int, *, overlaps: bool) -> tuple[dict[str, list[int]], float]:
    """What each stream said, and the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(runner, Path(folder), streams, overlaps=overlaps)
        vocab, sampling = runner.info.vocab_size, Sampling(max_tokens=count, temperature=0.7, seed=3)
        for number in range(streams):
            prompt = tuple((7 * number + 3 * place) % vocab for place in range(8))
            assert engine.add(Generate(f"r{number}", "tenant", "salt", prompt, sampling)) is None
        said: dict[str, list[int]] = {}
        begun = time.perf_counter()
        while not engine.is_idle:
            for event in engine.step():
                if isinstance(event, TokenEvent):
                    said.setdefault(event.request_id, []).extend(event.token_ids)
        took = time.perf_counter() - begun
        engine.shutdown()
        return said, took


def _engine(runner: Runner, home: Path, streams: int, *, overlaps: bool) -> Engine:
    info, pages = runner.info, runner.kv.pages
    config = EngineConfig(
        model=home, home=home, url="", page_size=PAGE, kv_pool_tokens=pages * PAGE, max_running=streams,
        step_tokens=max(512, 2 * streams), adapter_slots=1,
    )  # fmt: skip
    limits = Limits(info.vocab_size, info.context_len, pages * PAGE, config.max_rank, None, streams, None)
    adapters = AdapterPool(runner.bank, 1, _no_adapter, 1)
    device = runner if overlaps else None
    return Engine(config, limits, runner, Letters(), adapters, Journal(home), device=device)


def _no_adapter(adapter: AdapterRef) -> Weights:
    raise AssertionError(f"nobody asks for {adapter.version}")
