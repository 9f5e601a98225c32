"""The whole engine core on this machine, one run: batching, adapters, prefix cache, chunked prefill, journal and all.

`python -m benchmarks.engine MODEL_FOLDER [--quick] [--threads 2] [--only throughput,prefix]`

Prints a table and, as its last line, the same as JSON. Everything but the wire and the tokenizer is the engine as it is
served (`start` has those, too): scheduler, pages, adapter pool with its loads, kernels, sampler, metering with an fsync
per step that ends a request. Adapters are files of random weights, of ranks 4 to 64, on q and v, on attention or on
every linear, read and checked as those of a tenant are (they lie in the page cache: they have just been written);
answers never end early. Compare ratios within one run: figures of a shared machine move.
"""

import argparse
import dataclasses
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.adapter_files import RANKS, AdapterFiles
from benchmarks.cpu_engine import measure_machine
from benchmarks.registered import FEW, Account, Arm, CountedBank, by_zipf, evenly, shares
from benchmarks.start import start_engine
from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader
from engine.adapters.format import BaseShape
from engine.adapters.format import Limits as AdapterLimits
from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.text_stream import TextStream
from engine.metering.journal import Journal
from engine.models.rows import Rows
from engine.models.runner import Runner, load_runner
from engine.protocol import AdapterRef, Generate, Sampling, TokenEvent
from engine.scheduling.admission import Limits
from engine.scheduling.sequence import Batch

SLOTS = 64
REGISTERED = 2000
HOST_BYTES = 4 << 30  # of adapters: more than those that are drawn take


@dataclass(frozen=True)
class Work:
    """How much of everything; tokens and requests."""

    prompt: int = 64
    answer: int = 64
    prefix: int = 2048
    long_prompt: int = 4096
    churn: int = 160
    churn_answer: int = 16
    variance: int = 48
    longest: int = 128
    turns: int = 3


QUICK = Work(answer=12, long_prompt=1024, churn=24, churn_answer=4, variance=16, longest=32, turns=1)


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str


class Texts:
    """No text, no end: answers use up max_tokens."""

    eos_ids: frozenset[int] = frozenset()

    def stream(self, stop: tuple[str, ...] = (), *, include_stop: bool = False) -> TextStream:
        return TextStream(lambda ids: "x" * len(ids), stop, include_stop=include_stop)

    def piece(self, token: int) -> bytes:
        return b"x"


@dataclass
class Watched:
    """The model, noting at each step how much of the pages that sequences hold is filled."""

    runner: Runner
    account: Account
    held: int = 0
    filled: int = 0

    def run(self, batch: Batch) -> Rows:
        size = self.runner.kv.page_size
        self.held += sum(len(run.sequence.pages) * size for run in batch.runs)
        self.filled += sum(len(run.sequence.tokens) for run in batch.runs)
        begun = time.perf_counter()
        rows = self.runner.run(batch)
        self.account.stepped(batch, time.perf_counter() - begun)
        return rows

    @property
    def waste(self) -> float:
        """Percent of the held pages' room that no token uses."""
        return 100 * (1 - self.filled / self.held)


@dataclass
class Bench:
    """One engine over the shared runner, and when each request got its tokens."""

    engine: Engine
    model: Watched
    vocab: int
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    asked_at: dict[str, float] = field(default_factory=dict)
    token_times: dict[str, list[float]] = field(default_factory=dict)

    def ask(self, name: str, prompt: int | tuple[int, ...], answer: int, adapter: AdapterRef | None = None) -> None:
        """prompt: tokens, or how many random ones."""
        if isinstance(prompt, int):
            prompt = tuple(self.draw.randrange(self.vocab) for _ in range(prompt))
        sampling = Sampling(max_tokens=answer, temperature=0.0)
        self.asked_at[name] = time.perf_counter()
        error = self.engine.add(Generate(name, "tenant", "salt", prompt, sampling, adapter))
        assert error is None, error

    def step(self) -> None:
        for event in self.engine.step():
            assert isinstance(event, TokenEvent), event
            self.token_times.setdefault(event.request_id, []).extend([time.perf_counter()] * len(event.token_ids))

    def drain(self) -> None:
        while not self.engine.is_idle:
            self.step()
            if self.engine.is_waiting:
                begun = time.perf_counter()
                time.sleep(0.001)
                self.model.account.waiting += time.perf_counter() - begun

    def throughput(self, ask: Callable[[], None]) -> float:
        """Tokens answered per second."""
        before, begun = self.answered, time.perf_counter()
        ask()
        self.drain()
        return (self.answered - before) / (time.perf_counter() - begun)

    def ttft(self, name: str) -> float:
        return self.token_times[name][0] - self.asked_at[name]

    @property
    def answered(self) -> int:
        return sum(map(len, self.token_times.values()))


@dataclass(frozen=True)
class Machine:
    """adapters: the files that stand in for the tenants'. Requests name them by number."""

    config: EngineConfig
    runner: Runner
    work: Work
    adapters: AdapterFiles

    @contextmanager
    def bench(self, account: Account | None = None, **changes: int) -> Iterator[Bench]:
        with tempfile.TemporaryDirectory(prefix="veneer-bench-") as home:
            config = dataclasses.replace(self.config, home=Path(home), **changes)  # type: ignore[arg-type]
            account = account or Account()
            info, model = self.runner.info, Watched(self.runner, account)
            disk, files = DiskCache(Path(home) / "adapters", config.adapter_disk_bytes), self.adapters
            load = account.loader(adapter_loader(files.base, files.limits, disk, self.runner.bank))
            bank = CountedBank(self.runner.bank, account)
            pool = AdapterPool(bank, config.adapter_slots, load, config.adapter_host_bytes)
            limits = Limits(info.vocab_size, info.context_len, config.kv_pool_tokens, config.max_rank)
            journal = Journal(config.home)
            engine = Engine(config, limits, model, Texts(), pool, journal)
            yield Bench(engine, model, info.vocab_size)
            engine.shutdown()
            journal.close()


def throughput(machine: Machine) -> Iterator[Row]:
    """Requests of equal length, all at once; adapters are loaded beforehand."""
    work = machine.work
    for kind, adapters in (("base", 0), ("one adapter", 1), ("distinct adapters", 32)):
        for count in (1, 8, 32):
            if adapters > 1 and count == 1:
                continue
            with machine.bench() as bench:
                used = [machine.adapters.reference(i) for i in range(min(adapters, count))]
                for each in used:
                    bench.ask(f"warm {each.version}", 1, 1, each)
                bench.drain()
                requests = [(f"r{i}", used[i % len(used)] if used else None) for i in range(count)]

                def ask(bench: Bench = bench, requests: list[tuple[str, AdapterRef | None]] = requests) -> None:
                    for name, each in requests:
                        bench.ask(name, work.prompt, work.answer, each)

                yield Row(f"throughput, {kind} x{count}", bench.throughput(ask), "tokens/s")
                if kind == "base" and count == 32:
                    yield Row("KV waste, base x32", bench.model.waste, "%")


def registered(machine: Machine) -> Iterator[Row]:
    """The same number of requests, of adapters drawn from few or from many. See `benchmarks.registered`."""
    many, by_power_law = f"{REGISTERED:,} registered adapters", by_zipf(range(REGISTERED))
    few, *others = (
        Arm(f"{len(FEW)} registered adapters", evenly(FEW), is_warm=True),
        Arm(f"{many}, in host memory", by_power_law, is_warm=True),
        Arm(f"{many}, all cold", by_power_law),
    )
    _turn(machine, few)  # for the machine's own warming up, which no arm shall pay for
    accounts = {arm: Account() for arm in (few, *others)}
    read = [measure_machine(0.3).read]
    for _ in range(machine.work.turns):
        for arm, account in accounts.items():
            account.add(_turn(machine, arm))
        read.append(measure_machine(0.3).read)
    for arm, account in accounts.items():
        title = f"{arm.name}, {machine.work.churn} requests of {account.adapters}"
        more = [] if arm is few else shares(accounts[few], account, max(read), machine.config.threads)
        for figure, value, unit in (*account.figures(), *more):
            yield Row(f"{title}: {figure}", value, unit)


def _turn(machine: Machine, arm: Arm) -> Account:
    work, account = machine.work, Account()
    numbers = arm.draw(random.Random(0), work.churn)
    chosen = [machine.adapters.reference(number) for number in numbers]
    with machine.bench(account, adapter_host_bytes=HOST_BYTES) as bench:
        if arm.is_warm:
            for each in {each.digest: each for each in chosen}.values():
                bench.ask(f"warm {each.version}", 1, 1, each)
            bench.drain()
            account.begin_anew()
        begun, cpu_begun, answered = time.perf_counter(), time.process_time(), bench.answered
        for i, each in enumerate(chosen):
            bench.ask(f"r{i}", work.prompt, work.churn_answer, each)
        bench.drain()
        account.seconds, account.tokens = time.perf_counter() - begun, bench.answered - answered
        account.cpu_seconds = time.process_time() - cpu_begun
    account.requests, account.adapters = len(chosen), len(set(numbers))
    return account


def prefix(machine: Machine) -> Iterator[Row]:
    """The same long prefix twice, then with another question behind it."""
    with machine.bench() as bench:
        shared = tuple(bench.draw.randrange(bench.vocab) for _ in range(machine.work.prefix))
        for name, tail in (("cold", (1, 2, 3)), ("warm", (4, 5, 6))):
            bench.ask(name, (*shared, *tail), 1)
            bench.drain()
            yield Row(f"TTFT, {machine.work.prefix}-token prefix, {name}", 1e3 * bench.ttft(name), "ms")


def chunking(machine: Machine) -> Iterator[Row]:
    """Eight streams run, a long prompt arrives: the time between their tokens until it has been answered."""
    length = machine.work.long_prompt
    for name, step_tokens in (("chunks of 128", 128), ("chunks of 512", 512), ("no chunking", length + 64)):
        with machine.bench(step_tokens=step_tokens) as bench:
            for i in range(8):
                bench.ask(f"stream{i}", 16, 2000)
            for _ in range(10):
                bench.step()
            begun = time.perf_counter()
            bench.ask("long", length, 2)
            while len(bench.token_times.get("long", ())) < 2:
                bench.step()
            gaps = sorted(gap for i in range(8) for gap in _gaps(bench.token_times[f"stream{i}"], begun))
            yield Row(f"ITL p99 while {length} tokens arrive, {name}", 1e3 * gaps[int(0.99 * (len(gaps) - 1))], "ms")
            yield Row(f"TTFT of those {length} tokens, {name}", 1e3 * bench.ttft("long"), "ms")


def _gaps(times: list[float], since: float) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times) if later >= since]


def batching(machine: Machine) -> Iterator[Row]:
    """Answers of very different lengths, eight at a time: the next eight when all are done, or each when one is."""
    work, draw = machine.work, random.Random(1)
    lengths = [min(work.longest, 4 + int(draw.expovariate(4 / work.longest))) for _ in range(work.variance)]
    for name, at_once in (("static", 8), ("continuous", work.variance)):
        with machine.bench(max_running=8) as bench:

            def ask(bench: Bench = bench, at_once: int = at_once) -> None:
                for start in range(0, len(lengths), at_once):
                    for i, length in enumerate(lengths[start : start + at_once], start):
                        bench.ask(f"r{i}", work.prompt // 2, length)
                    bench.drain()

            yield Row(
                f"{name} batching, {work.variance} answers of 4 to {work.longest}", bench.throughput(ask), "tokens/s"
            )


def start(machine: Machine) -> Iterator[Row]:
    """A whole process, see `benchmarks.start`; behind one that brings its files into memory and is not counted."""
    model, threads = machine.config.model, machine.config.threads
    start_engine(model, threads)
    found = [start_engine(model, threads) for _ in range(machine.work.turns)]
    yield Row("process start to its first word", median(each.ready for each in found), "s")
    yield Row("process start to first token", median(each.token for each in found), "s")


PARTS = {part.__name__: part for part in (throughput, registered, prefix, chunking, batching, start)}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--quick", action="store_true", help="less of everything, in under two minutes")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between (%(default)s)")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := sorted({*chosen} - {*PARTS}):
        parser.error(f"--only has {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    config = EngineConfig(
        model=options.model, home=Path(tempfile.gettempdir()), url="", threads=options.threads,
        kv_pool_tokens=16_384, adapter_slots=SLOTS, max_rank=max(RANKS),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="veneer-adapters-") as folder:
        files = AdapterFiles(Path(folder), BaseShape.from_config_file(config.model), AdapterLimits(config.max_rank))
        measure(Machine(config, load_runner(config), QUICK if options.quick else Work(), files), chosen)
    return 0


def measure(machine: Machine, chosen: list[str]) -> None:
    """Print the table, and the JSON line last."""
    config, is_quick = machine.config, machine.work == QUICK
    begun, load = time.perf_counter(), os.getloadavg()[0]
    print(f"{config.model.name}, {config.threads} threads, load average {load:.1f} at the start\n")
    print("| measured | value | unit |\n|---|---|---|", flush=True)
    rows: list[Row] = []
    for name in chosen:
        for row in PARTS[name](machine):
            rows.append(row)
            print(f"| {row.name} | {row.value:,.1f} | {row.unit} |", flush=True)
    result = {
        "model": config.model.name, "threads": config.threads, "quick": is_quick, "load_average": round(load, 2),
        "seconds": round(time.perf_counter() - begun, 1), "rows": [dataclasses.asdict(row) for row in rows],
    }  # fmt: skip
    print(f"\n{json.dumps(result)}")


if __name__ == "__main__":
    sys.exit(main())
