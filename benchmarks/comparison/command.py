"""The command line of `benchmarks.peers`: from options to the table, the JSON line and the file."""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.comparison.adapters import write_adapters
from benchmarks.comparison.bound import Bound, Machine
from benchmarks.comparison.contest import ROUNDS, Contest
from benchmarks.comparison.entrants import MAKERS, NotThere, Room, built_python
from benchmarks.comparison.facts import facts_of, headline
from benchmarks.comparison.figures import HEAD, Row, line
from benchmarks.comparison.gguf_files import NotConvertible
from benchmarks.comparison.goals import goal_lines
from benchmarks.comparison.peer import Peer, PeerFailed
from benchmarks.comparison.referee import Referee
from benchmarks.comparison.work import FULL, QUICK, Corpus
from benchmarks.cpu_engine import measure_machine
from engine.capacity import read_shape

MINUTES, QUICK_MINUTES = 15.0, 4.0
STRENGTH = 0.05  # of weights that spread by 0.05 to 0.4: every adapter says something else


@dataclass
class Report:
    """What is printed, kept for a file."""

    lines: list[str] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        self.lines.append(text)
        print(text, flush=True)

    @staticmethod
    def progress(text: str) -> None:
        print(f"{datetime.now().astimezone():%H:%M:%S}{text}", file=sys.stderr, flush=True)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"peers: {message} (see python -m benchmarks.peers --help)\n")


def _options(description: str | None, arguments: list[str] | None) -> argparse.Namespace:
    parser = _Parser(
        prog="python -m benchmarks.peers", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", type=Path)
    add("--quick", action="store_true", help="a few short workloads, in under five minutes")
    add("--only", help="workloads by name, with commas between; see the table for their names")
    add("--peers", default=",".join(MAKERS), help="with commas between (%(default)s); the first one is compared with")
    add("--threads", type=int, default=os.cpu_count() or 1, help="of the peers that are called in process")
    add("--rounds", type=int, default=ROUNDS, help="at most (%(default)s)")
    add("--minutes", type=float, help=f"after which no workload begins ({MINUTES:.0f}, quick {QUICK_MINUTES:.0f})")
    add("--results", type=Path, metavar="FOLDER", help="also write what is printed to peers-DATE.md there")
    options = parser.parse_args(arguments)
    if not (options.model / "config.json").exists():
        parser.error(f"{options.model} holds no model: config.json is missing")
    for name in ("threads", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}: it must be at least 1")
    if options.minutes is not None and options.minutes <= 0:
        parser.error(f"--minutes is {options.minutes}: it must be over 0")
    options.model = options.model.absolute()
    known = QUICK if options.quick else FULL
    options.workloads = _chosen(parser, "--only", options.only, {work.name: work for work in known})
    options.makers = dict(zip(options.peers.split(","), _chosen(parser, "--peers", options.peers, MAKERS), strict=True))
    return options


def _chosen(parser: _Parser, name: str, text: str | None, known: dict[str, Any]) -> list[Any]:
    """What was named, in the order of the names; everything where nothing was."""
    wanted = [part.strip() for part in text.split(",")] if text is not None else [*known]
    if unknown := sorted({*wanted} - {*known}):
        parser.error(f"{name} has {', '.join(unknown)}; it may have {', '.join(known)}")
    return [known[each] for each in wanted]


def main(description: str | None, arguments: list[str] | None = None) -> int:
    options = _options(description, arguments)
    # So that whatever was started is ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun, report = time.monotonic(), Report()
    deadline = begun + 60 * (options.minutes or (QUICK_MINUTES if options.quick else MINUTES))
    folder = Path(tempfile.mkdtemp(prefix="veneer-peers-"))
    folder.chmod(0o711)
    try:
        with ExitStack() as ends:
            rows, facts = compare(options, folder, deadline, report, ends)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts["seconds"] = round(time.monotonic() - begun, 1)
    report.say(f"\n{json.dumps({**facts, 'rows': [row.as_json() for row in rows]})}")
    if options.results:
        _write(report, options.results)
    return 0


def compare(
    options: argparse.Namespace, folder: Path, deadline: float, report: Report, ends: ExitStack
) -> tuple[list[Row], dict[str, Any]]:
    """The rows, and what else belongs into the JSON line. `ends` stops what was started."""
    measured = measure_machine(0.5 if options.quick else 2.0)
    machine = Machine(measured.read, measured.multiply)
    shape, count = read_shape(options.model), max(work.adapters for work in options.workloads)
    facts = facts_of(options.model, machine, options.makers, quick=options.quick)
    report.say(headline(facts) + "\n")
    adapters = write_adapters(folder / "adapters", shape, options.model.name, count, strength=STRENGTH)
    room = Room(folder, options.model, shape, adapters, options.threads)
    peers = _peers(options, room, report, ends)
    bound = Bound(shape, {adapter.name: adapter.parameters for adapter in adapters}, machine)
    contest = Contest(
        peers, Corpus(options.model), bound, _judge(room, report, ends), deadline, report.progress, options.rounds
    )
    report.say(HEAD)
    rows = list[Row]()
    for row in contest.run(options.workloads):
        rows.append(row)
        report.say(line(row))
    if goals := goal_lines(rows):
        report.say("\n" + "\n".join(goals))
    return rows, facts


def _peers(options: argparse.Namespace, room: Room, report: Report, ends: ExitStack) -> list[Peer]:
    found = list[Peer]()
    for name, maker in options.makers.items():
        try:
            peer = maker(room)
        except (NotThere, NotConvertible) as error:
            report.say(f"{name}: {error}\n")
            continue
        ends.callback(peer.stop)
        found.append(peer)
    return found


def _judge(room: Room, report: Report, ends: ExitStack) -> Referee | None:
    try:
        judge = Referee(built_python("peft"), room.peft_settings, room.folder_of("logs"))
    except (NotThere, PeerFailed) as error:
        report.say(f"answers are not checked, for want of transformers and PEFT: {error}\n")
        return None
    ends.callback(judge.stop)
    return judge


def _write(report: Report, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"peers-{datetime.now(UTC):%Y-%m-%d}.md"
    *table, last = report.lines
    out.write_text("\n".join(["# Veneer and its peers", "", *table, "", "```json", last.strip(), "```", ""]))
    print(f"written to {out}", file=sys.stderr)
