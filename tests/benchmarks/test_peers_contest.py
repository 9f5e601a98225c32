"""Servers take turns, one that fails ends no other, and what is printed follows from what was measured."""

import dataclasses
import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.comparison import command, contest
from benchmarks.comparison.bound import Bound, Machine
from benchmarks.comparison.contest import Contest
from benchmarks.comparison.figures import Figures, Row, figures_of, line
from benchmarks.comparison.goals import goal_lines
from benchmarks.comparison.peer import PeerFailed
from benchmarks.comparison.work import FULL, QUICK, Answer, Ask, Job, Workload, check_job, job_of
from benchmarks.cpu_engine import Machine as Measured
from engine.capacity import Shape

SHAPE = Shape(layers=2, hidden=8, ffn=16, q_heads=2, kv_heads=1, head_dim=4, vocab=32, tied=True)
BOUND = Bound(SHAPE, {f"adapter-{i}": 100 * (i + 1) for i in range(32)}, Machine(1e6, 1e6))
WORK = Workload(name="two at once", at_once=2, prompt=4, answer=3)


class Counting:
    """Prompts that say nothing."""

    def draw(self, count: int, source: random.Random) -> tuple[int, ...]:
        return tuple(source.randrange(100) for _ in range(count))


@dataclass
class Fake:
    """Answers every token after `gap` seconds of its own clock. fails_at: the call that raises."""

    name: str
    gap: float = 0.01
    refuses: str | None = None
    fails_at: int | None = None
    short_by: int = 0
    wrong: bool = False
    calls: list[Job] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    stopped: int = 0

    def cannot(self, workload: Workload) -> str | None:
        return self.refuses

    def prepare(self, workload: Workload) -> None: ...

    def run(self, job: Job, seconds: float, *, with_ids: bool = False) -> list[Answer]:
        self.calls.append(job)
        self.log.append(self.name)
        if self.fails_at == len(self.calls):
            raise PeerFailed("it ended: out of | memory")
        counts = [ask.answer - (0 if with_ids else self.short_by) for ask in job.asks]
        times = [tuple(self.gap * (i + 1) for i in range(count)) for count in counts]
        return [Answer(0.0, t, n, tuple(range(n))) for t, n in zip(times, counts, strict=True)]

    def peak_bytes(self) -> int:
        return 5_000_000

    def stop(self) -> None:
        self.stopped += 1


class OnlyWrong:
    """Finds a fault in the answers of one server."""

    def __init__(self, peer: Fake | None = None) -> None:
        self.peer = peer

    def faults(self, job: Job, answers: list[Answer]) -> str | None:
        return "wrong answers for 1 of 1 models, such as base" if self.peer and job in self.peer.calls else None


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch) -> None:
    monkeypatch.setattr(contest, "wait_until_quiet", lambda: None)


def play(*peers: Fake, judge: object = None, seconds: float = 60.0) -> list[Row]:
    held = Contest(peers, Counting(), BOUND, judge, time.monotonic() + seconds, lambda text: None)  # type: ignore[arg-type]
    return list(held.run([WORK]))


def test_servers_take_turns_with_the_same_prompts_and_new_ones_each_round() -> None:
    log: list[str] = []
    ours, theirs = Fake("ours", log=log), Fake("theirs", gap=0.04, log=log)
    first, second = play(ours, theirs)
    assert log == ["ours", "theirs"] * 4  # a check, then three rounds
    assert ours.calls == theirs.calls
    assert len({job.asks[0].prompt for job in ours.calls}) == 4
    assert (first.lead, second.lead) == (None, pytest.approx(4.0))
    assert first.rate == pytest.approx(2 * 3 / 0.03)
    assert first.bound == pytest.approx(6 / BOUND.seconds(job_of(WORK, Counting(), 0)))


@pytest.mark.parametrize("at", [1, 2, 3])
def test_one_that_breaks_ends_alone(at: int) -> None:
    ours, broken, last = Fake("ours"), Fake("broken", fails_at=at), Fake("last")
    rows = play(ours, broken, last)
    assert [len(row.rounds) for row in rows] == [3, max(at - 2, 0), 3]
    assert "stopped: it ended: out of / memory" in line(rows[1])
    assert (broken.stopped, len(broken.calls), last.stopped) == (1, at, 0)


def test_when_ours_breaks_the_others_are_still_shown() -> None:
    rows = play(Fake("ours", fails_at=1), Fake("theirs"))
    assert [(row.peer, len(row.rounds), row.lead) for row in rows] == [("ours", 0, None), ("theirs", 3, None)]


def test_wrong_answers_are_shown_and_not_timed() -> None:
    wrong = Fake("wrong")
    rows = play(Fake("ours", gap=0.02), wrong, judge=OnlyWrong(wrong))
    assert len(wrong.calls) == 1
    assert "wrong answers for 1 of 1 models" in line(rows[1])


def test_when_the_judge_breaks_rows_say_that_nobody_checked() -> None:
    class Breaks:
        def faults(self, job: Job, answers: list[Answer]) -> str | None:
            raise PeerFailed("it ended")

    rows = play(Fake("ours"), Fake("theirs"), judge=Breaks())
    assert [(len(row.rounds), row.note) for row in rows] == [(3, "not checked")] * 2
    assert "| theirs (not checked) |" in line(rows[1])


def test_work_that_one_cannot_do_is_said() -> None:
    ours, other = play(Fake("ours"), Fake("other", refuses="one adapter set in a batch"))
    assert line(other) == "| two at once | other | one adapter set in a batch | | | | | | | | |"
    assert len(ours.rounds) == 3


def test_answers_that_end_early_are_no_measurement() -> None:
    _, short = play(Fake("ours"), Fake("short", short_by=1))
    assert not short.rounds
    assert "not as long as asked for, by 1 tokens" in short.note


def test_without_time_nothing_begins() -> None:
    peer = Fake("ours")
    (row,) = play(peer, seconds=-1)
    assert (row.note, peer.calls) == ("left out: no time was left", [])


def test_figures_by_hand() -> None:
    job = Job((Ask((1,), None, 3), Ask((1,), None, 2, after=0)))
    figures = figures_of(job, [Answer(10.0, (10.1, 10.2, 10.5), 3), Answer(10.1, (10.4, 10.6), 2)])
    assert figures.rate == pytest.approx(5 / 0.6)
    assert (figures.ttft, figures.itl_p50) == (pytest.approx(300), pytest.approx(200))
    assert figures.itl_p99 == pytest.approx(200)  # the third gap is the last percentile of three


def test_the_bound_by_hand() -> None:
    """One request of two tokens that answers two: a prompt, then one step of one token."""
    machine = Machine(read=1000.0, multiply=1e12)
    weights, head = SHAPE.parameters(active=True), 32 * 8
    job = Job((Ask((1, 2), "adapter-0", 2),))
    kv = 3 * SHAPE.kv_bytes("fp8")
    reads = 2 * weights / 1000 + (2 * (weights + 100) + kv) / 1000
    assert Bound(SHAPE, {"adapter-0": 100}, machine).seconds(job) == pytest.approx(reads, rel=1e-6)
    machine = Machine(read=1e15, multiply=1000.0)
    attention = 2 * 2 * 2 * 4
    prefill = 2 * (weights - head + 100) + 3 * attention + head
    multiplies = (prefill + weights + 100 + 3 * attention) / 1000
    assert Bound(SHAPE, {"adapter-0": 100}, machine).seconds(job) == pytest.approx(multiplies, rel=1e-6)


def test_a_shared_prefix_is_computed_once() -> None:
    prefix = tuple(range(16))
    asks = tuple(Ask((*prefix, i), None, 1) for i in range(4))
    machine = Bound(SHAPE, {}, Machine(1e15, 1000.0))
    assert machine.seconds(Job(asks, 16)) < 0.5 * machine.seconds(Job(asks))


@pytest.mark.parametrize("workload", [*FULL, *QUICK], ids=lambda workload: workload.name)
def test_jobs_hold_what_their_workload_says(workload: Workload) -> None:
    job = job_of(workload, Counting(), 1)
    assert len(job.asks) == workload.at_once + workload.late
    assert len({ask.adapter for ask in job.asks if ask.adapter}) == min(workload.adapters, workload.at_once)
    assert {ask.prompt[: workload.shared] for ask in job.asks[: workload.at_once]} == {job.asks[0].prompt[: job.shared]}
    assert all(ask.after is None or ask.after == 0 for ask in job.asks)
    checked = check_job(workload, Counting(), 2)
    assert {ask.adapter for ask in checked.asks} == {ask.adapter for ask in job.asks}
    assert job.asks[0].prompt != job_of(workload, Counting(), 2).asks[0].prompt


def test_goals_take_the_best_peer_and_say_nothing_of_what_was_not_run() -> None:
    rounds = (Figures(10.0, 1.0, None, None),)
    rows = [
        Row("base x32", "Veneer", rounds, 20.0), Row("base x32", "vLLM", rounds, 20.0, 3.0),
        Row("base x32", "llama.cpp", rounds, 20.0, 1.2), Row("base x32", "transformers + PEFT", note="stopped"),
    ]  # fmt: skip
    assert goal_lines(rows)[2:] == [
        "| base x32 against the best peer | 1.5x | 1.20x |",
        "| share of the bound, base x32, prompts included | 55 % | 50 % |",
    ]
    assert goal_lines([]) == []


def _tiny_config(folder: Path) -> Path:
    config = {
        "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 16, "vocab_size": 32,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "tie_word_embeddings": True,
    }  # fmt: skip
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_whole_command_with_fake_servers(tmp_path, monkeypatch, capsys) -> None:
    """Everything but servers and models: adapters on disk, rounds, table, goals, JSON line, file."""
    broken = Fake("broken", fails_at=2)
    monkeypatch.setattr(command, "MAKERS", {"veneer": lambda room: Fake("Veneer"), "vllm": lambda room: broken})
    monkeypatch.setattr(command, "Corpus", lambda model: Counting())
    monkeypatch.setattr(command, "measure_machine", lambda seconds: Measured(1e9, 1e9))
    monkeypatch.setattr(command, "built_python", lambda name: (_ for _ in ()).throw(command.NotThere("not set up")))
    model = _tiny_config(tmp_path / "model")
    assert command.main(None, [str(model), "--quick", "--results", str(tmp_path / "results")]) == 0
    printed = capsys.readouterr().out
    result = json.loads(printed.splitlines()[-1])
    assert len(result["rows"]) == 2 * len(QUICK)
    assert {row["peer"] for row in result["rows"]} == {"Veneer", "broken"}
    assert "answers are not checked" in printed
    (file,) = (tmp_path / "results").iterdir()
    assert "| base x8 | Veneer (not checked) |" in file.read_text()
    assert broken.stopped == 2  # when it broke, and at the end


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--only", "base x3"], "--only has base x3; it may have base x1, "),
        (["--peers", "veneer,sglang"], "--peers has sglang; it may have veneer, vllm, peft, llama"),
        (["--rounds", "0"], "--rounds is 0: it must be at least 1"),
        (["--minutes", "-2"], "--minutes is -2.0: it must be over 0"),
    ],
)
def test_what_cannot_be_asked_is_said(arguments: list[str], said: str, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(None, [str(_tiny_config(tmp_path / "model")), *arguments])
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)


def test_a_folder_without_a_model_is_refused(tmp_path, capsys) -> None:
    with pytest.raises(SystemExit):
        command.main(None, [str(tmp_path)])
    assert "config.json is missing" in capsys.readouterr().err


def test_answers_are_checked_once_for_each_set_of_adapters() -> None:
    peer = Fake("ours")
    held = Contest([peer], Counting(), BOUND, OnlyWrong(), time.monotonic() + 60, lambda text: None)  # type: ignore[arg-type]
    works = [
        dataclasses.replace(WORK, name=name, adapters=count, rounds=1) for name, count in (("a", 2), ("b", 2), ("c", 3))
    ]
    rows = list(held.run(works))
    assert [len(row.rounds) for row in rows] == [1, 1, 1]
    assert [len(job.asks) for job in peer.calls] == [2, 2, 2, 3, 2]  # a check, a and b; another check, c
