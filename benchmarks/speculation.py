"""Speculation on and off, side by side: tokens per second, drafts accepted, tokens per step.

`OMP_WAIT_POLICY=passive python -m benchmarks.speculation MODEL_FOLDER [--quick] [--threads 2] [--draft-model FOLDER]`,
with the policy that `python -m engine` sets for itself.

Prints a table and, as its last line, the same as JSON. The text is the model's own, greedy, on three kinds of work: two
that copy (a summary in the text's own words, an edit of a function) and free chat. Prompts are in the prefix cache
beforehand, so that decoding is what is timed. Answers differ in length and as one request of a batch ends the next
begins; the clock stops when none is left to take its place, as a batch that empties says nothing of its size. Every
figure is the median of rounds in which the two take turns, A B A B; a gain is the median of the rounds' own ratios. One
controller sees all the work in the order of the table, as that of a server would: what it learned of copying is not
true of chat.
"""

import argparse
import ast
import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.tokenizer import Tokenizer
from engine.metering.journal import Journal
from engine.models.rows import Rows
from engine.models.runner import Runner, load_runner
from engine.protocol import Generate, Message, Prepare, Sampling, TokenEvent
from engine.scheduling.admission import Limits
from engine.scheduling.sequence import Batch
from engine.speculation.setup import check_draft_model, proposer_of
from engine.speculation.speculator import Speculator

ROOT = Path(__file__).resolve().parents[1]
# Chat is where there is little to gain and a floor to hold, within the noise of a round.
ROUNDS = {"summarise": 3, "edit code": 3, "free chat": 7}
BATCHES, QUICK_BATCHES = (1, 2, 4, 8, 16, 32), (1, 8, 32)
TOPICS = (
    "a lighthouse", "the sea", "bread", "an old bridge", "winter", "a violin", "the moon", "tea", "a lost dog", "rain",
    "a train", "gardens", "chess", "a market", "mountains", "paper", "a river", "salt", "owls", "a clock", "wool",
    "the desert", "a school", "glass", "bicycles", "honey", "a map", "coal", "a theatre", "birds", "wind", "a harbour",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """on, off: tokens per second. acceptance: part of the drafted tokens that came, None where none was drafted.
    tokens_per_step: of a sequence, with speculation."""

    work: str
    batch: int
    off: float
    on: float
    gain: float
    acceptance: float | None
    tokens_per_step: float


@dataclass
class Watched:
    """The model, counting the steps of sequences that decode, and what was drafted in them."""

    runner: Runner
    decodes: int = 0
    drafted: int = 0

    def run(self, batch: Batch) -> Rows:
        decodes = [run for run in batch.runs if run.samples]
        self.decodes += len(decodes)
        self.drafted += sum(len(run.draft) for run in decodes)
        return self.runner.run(batch)


@dataclass(frozen=True)
class Timed:
    """tokens: all that were answered. rate: tokens per second while the batch was full."""

    tokens: int
    rate: float
    decodes: int
    drafted: int


@dataclass(frozen=True)
class Machine:
    config: EngineConfig
    runner: Runner
    tokenizer: Tokenizer
    answer: int

    def run(self, prompts: list[tuple[int, ...]], at_once: int, speculator: Speculator | None) -> Timed:
        """Answer every prompt after all have been computed once; `at_once` run, and as one ends the next begins."""
        with tempfile.TemporaryDirectory(prefix="veneer-bench-") as home:
            journal, model, info = Journal(Path(home)), Watched(self.runner), self.runner.info
            limits = Limits(info.vocab_size, info.context_len, self.config.kv_pool_tokens, self.config.max_rank)
            adapters = AdapterPool(self.runner.bank, self.config.adapter_slots, _no_adapter, 1 << 20)
            config = dataclasses.replace(self.config, max_running=at_once)
            engine = Engine(config, limits, model, self.tokenizer, adapters, journal, speculator=speculator)
            _drain(engine, [_request(f"warm {i}", prompt, 1) for i, prompt in enumerate(prompts)], at_once)
            model.decodes = model.drafted = 0
            lengths = [self.answer * (4 + i * 5 % 8) // 8 for i in range(len(prompts))]
            asked = zip(prompts, lengths, strict=True)
            tokens, rate = _drain(engine, [_request(f"{i}", *each) for i, each in enumerate(asked)], at_once)
            engine.shutdown()
            journal.close()
        return Timed(tokens, rate, model.decodes, model.drafted)

    def prompt(self, text: str) -> tuple[int, ...]:
        return self.tokenizer.prepare(Prepare("", messages=(Message("user", text),))).token_ids

    def compare(self, work: str, prompts: list[tuple[int, ...]], at_once: int, rounds: int, on: Speculator) -> Row:
        pairs = [(self.run(prompts, at_once, None), self.run(prompts, at_once, on)) for _ in range(rounds)]
        drafted = sum(b.drafted for _, b in pairs)
        # Each step of a sequence brings one token that was not drafted.
        came = sum(b.tokens - b.decodes for _, b in pairs)
        return Row(
            work=work,
            batch=at_once,
            off=median(a.rate for a, _ in pairs),
            on=median(b.rate for _, b in pairs),
            gain=median(b.rate / a.rate for a, b in pairs),
            acceptance=came / drafted if drafted else None,
            tokens_per_step=sum(b.tokens for _, b in pairs) / sum(b.decodes for _, b in pairs),
        )


def _no_adapter(adapter: object) -> dict[tuple[int, str], object]:
    raise AssertionError("no request here has an adapter")


def _request(name: str, prompt: tuple[int, ...], answer: int) -> Generate:
    return Generate(name, "tenant", "salt", prompt, Sampling(max_tokens=answer, temperature=0.0))


def _drain(engine: Engine, requests: list[Generate], at_once: int) -> tuple[int, float]:
    """Answer them all. Returns the tokens, and how many came per second while `at_once` were running."""
    for request in requests:
        error = engine.add(request)
        assert error is None, error
    tokens, open_requests, rate, begun = 0, len(requests), 0.0, time.perf_counter()
    while not engine.is_idle:
        was_full = open_requests >= at_once
        for event in engine.step():
            assert isinstance(event, TokenEvent), event
            tokens += len(event.token_ids)
            open_requests -= event.finish_reason is not None
        if was_full:
            rate = tokens / (time.perf_counter() - begun)
    return tokens, rate


def summaries() -> list[str]:
    """Paragraphs of this repository's own pages."""
    paragraphs = [
        " ".join(part.split())
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for part in page.read_text(encoding="utf-8").split("\n\n")
        if 250 <= len(part) <= 1200 and part[0] not in "|#`{"
    ]
    return [f"Summarise this text by quoting its most important sentences word for word:\n\n{p}" for p in paragraphs]


def edits() -> list[str]:
    """Functions of this repository's own sources."""
    functions = list[str]()
    for path in sorted((ROOT / "engine").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            code = ast.get_source_segment(source, node) if isinstance(node, ast.FunctionDef) else None
            if code and 500 <= len(code) <= 1200:
                functions.append(code)
    return [
        f"Rename `self` to `this` in this function and answer with the whole function:\n\n```python\n{code}\n```"
        for code in functions
    ]


def chats() -> list[str]:
    return [f"Tell me a short story about {topic}." for topic in TOPICS]


WORK: dict[str, Callable[[], list[str]]] = {"summarise": summaries, "edit code": edits, "free chat": chats}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speculation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--quick", action="store_true", help="batches of 1, 8 and 32, shorter answers, fewer rounds")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--draft-model", type=Path, help="draft with this model instead of by prompt lookup")
    options = parser.parse_args()
    config = EngineConfig(
        model=options.model, home=Path(tempfile.gettempdir()), url="", threads=options.threads, kv_pool_tokens=32_768,
        adapter_slots=1, speculate="draft" if options.draft_model else "lookup", draft_model=options.draft_model,
    )  # fmt: skip
    check_draft_model(config)
    runner = load_runner(config)
    tokenizer = Tokenizer(config.model, vocab_size=runner.info.vocab_size, context_len=runner.info.context_len)
    machine = Machine(config, runner, tokenizer, answer=64 if options.quick else 160)
    proposer = proposer_of(config, runner.info)
    assert proposer is not None
    rows, load = _measure(machine, Speculator(proposer), options.quick), os.getloadavg()[0]
    result = {
        "model": options.model.name, "speculate": config.speculate, "threads": options.threads, "quick": options.quick,
        "load_average": round(load, 2), "rows": [dataclasses.asdict(row) for row in rows],
    }  # fmt: skip
    print(f"\n{json.dumps(result)}")
    return 0


def _measure(machine: Machine, speculator: Speculator, quick: bool) -> list[Row]:
    print(f"{machine.config.model.name}, {machine.config.threads} threads, {machine.config.speculate}\n")
    print("| work | batch | tokens/s without | with | gain | drafts accepted | tokens per step |")
    print("|---|---|---|---|---|---|---|", flush=True)
    rows = list[Row]()
    for at_once in QUICK_BATCHES if quick else BATCHES:
        for work, texts in WORK.items():
            wanted = max((2 if quick else 3) * at_once, 4)
            prompts = [machine.prompt(text) for text in islice(cycle(texts()[:32]), wanted)]
            row = machine.compare(work, prompts, at_once, 2 if quick else ROUNDS[work], speculator)
            rows.append(row)
            accepted = "none drafted" if row.acceptance is None else f"{100 * row.acceptance:.0f} %"
            figures = f"{row.off:.1f} | {row.on:.1f} | {row.gain:.2f} | {accepted} | {row.tokens_per_step:.2f}"
            print(f"| {work} | {row.batch} | {figures} |", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
