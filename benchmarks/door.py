"""The door with all its database work beside two proxies that do none: requests per second and processor time of each.

`python -m benchmarks.door [--seconds 6] [--connections 64] [--tenants 8] [--litellm VENV] [--only door]`

The same chat request, answered in 8 words: streamed, whole, and streamed from a tenant's adapter, which only the door
has. The door checks the key, holds money on two levels, settles and records each request in the embedded PostgreSQL,
with an engine behind it that only speaks the wire. The proxies have an OpenAI server behind them that only writes the
answer. LiteLLM's proxy runs without its database, which needs binaries that no package registry carries; `--litellm`
names a virtual environment with `litellm[proxy]`, and Starlette's proxy runs in the same one. Last, how often a second
one tenant's hold row is taken. Prints two tables, the goals, and as its last line the same as JSON.

Processor time is what counts on a machine that does other things as well; requests per second is what one process of
each came to, with the load generator on the same cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.serving.stack import ROOT, Processes, Stack, cpu_seconds, end, wait_for_port
from benchmarks.serving.work import MODEL, MODES
from controlplane.embedded.ports import free_port

DOOR = "veneer's door"
WARM_SECONDS = 2.0
GOAL_MS = 2.0
GOAL_TIMES = 10.0
GOAL_HOLDS = 500.0
PEERS = ROOT / ".veneer" / "peers" / "litellm"


@dataclass(frozen=True)
class Row:
    """cpu_ms: of the server's process per request; store_cpu_ms: of PostgreSQL's and Valkey's. per_core: requests per
    second of the server's processor time. events: server-sent events of an answer. absent: why nothing was measured."""

    server: str
    mode: str
    requests_per_s: float = 0.0
    cpu_ms: float = 0.0
    store_cpu_ms: float = 0.0
    per_core: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    events: float = 0.0
    absent: str = ""


@dataclass(frozen=True)
class Server:
    """stores: processes whose time is told apart."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    keys: tuple[str, ...]
    stores: tuple[subprocess.Popen[bytes], ...] = ()


def measure(server: Server, mode: str, connections: int, seconds: float) -> Row:
    def load(duration: float) -> dict[str, float]:
        command = [
            sys.executable, "-m", "benchmarks.serving.load", f"127.0.0.1:{server.port}", str(connections),
            str(duration), mode, *server.keys,
        ]  # fmt: skip
        found: dict[str, float] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
        if found["bad"] or not found["requests"]:
            raise RuntimeError(f"{server.name}: {found['bad']:.0f} answers were bad: {found['first_bad']}")
        return found

    load(WARM_SECONDS)
    pids = [server.process.pid, *(store.pid for store in server.stores)]
    before = [cpu_seconds(pid) for pid in pids]
    found = load(seconds)
    own, *stores = (cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True))
    count = found["requests"]
    return Row(
        server.name, mode, count / found["seconds"], 1000 * own / count,
        1000 * sum(stores) / count, count / own, found["p50_ms"], found["p99_ms"], found["events"],
    )  # fmt: skip


def start_door(processes: Processes, stack: Stack) -> Server:
    processes.start("engine", [sys.executable, "-m", "benchmarks.serving.engine", stack.engine_url], stack.env)
    port = free_port()
    command = [
        sys.executable, "-m", "uvicorn", "controlplane.inference.asgi:application", "--host", "127.0.0.1",
        "--port", str(port), "--no-access-log", "--no-proxy-headers",
    ]  # fmt: skip
    process = processes.start("door", command, stack.env)
    wait_for_port(port, process)
    time.sleep(1)  # until the door has found its engine
    return Server(DOOR, port, process, tuple(json.loads(stack.seeded)), (stack.postgres, stack.valkey))


def start_proxy(processes: Processes, name: str, venv: Path) -> Server:
    upstream, port = free_port(), free_port()
    folder = ROOT / "benchmarks" / "serving"
    process = processes.start(f"{name}-upstream", [sys.executable, str(folder / "upstream.py"), str(upstream)])
    wait_for_port(upstream, process)
    make = {"starlette": _starlette, "litellm": _litellm}[name]
    process, key = make(processes, venv, upstream, port)
    wait_for_port(port, process)
    time.sleep(3)  # LiteLLM listens before it is ready
    return Server(name, port, process, (key,))


def _starlette(processes: Processes, venv: Path, upstream: int, port: int) -> tuple[subprocess.Popen[bytes], str]:
    command = [
        str(venv / "bin/python"), "-m", "uvicorn", "bare_proxy:app", "--port", str(port), "--no-access-log",
        "--app-dir", str(ROOT / "benchmarks" / "serving"), "--log-level", "warning",
    ]  # fmt: skip
    env = {"PATH": os.environ["PATH"], "UPSTREAM": f"http://127.0.0.1:{upstream}"}
    return processes.start("starlette", command, env), "none"


def _litellm(processes: Processes, venv: Path, upstream: int, port: int) -> tuple[subprocess.Popen[bytes], str]:
    config = processes.folder / "litellm.json"  # JSON is YAML
    params = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "none"}
    key = "sk-" + os.urandom(16).hex()
    config.write_text(
        json.dumps(
            {
                "model_list": [{"model_name": MODEL, "litellm_params": params}],
                "general_settings": {"master_key": key},
                "litellm_settings": {"telemetry": False},
            }
        )
    )
    command = [str(venv / "bin/litellm"), "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    env = {
        "PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "HOME": str(processes.folder), "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True",
    }  # fmt: skip
    return processes.start("litellm", command, env, cwd=str(processes.folder)), key


def measure_all(options: argparse.Namespace) -> tuple[list[Row], list[dict[str, Any]]]:
    """What every server does; and what the hold row does, where the door is among them."""
    rows: list[Row] = []
    holds: list[dict[str, Any]] = []
    for name in options.only:
        with tempfile.TemporaryDirectory(prefix="veneer-bench-") as path:
            folder = Path(path)
            folder.chmod(0o755)
            with Processes(folder) as processes:
                if name == "door":
                    stack = Stack(processes, options.tenants)
                    rows += _loaded(start_door(processes, stack), MODES, options)
                    holds = measure_hot_row(stack, options.seconds)
                else:
                    rows += _measured_proxy(processes, name, options)
    return rows, holds


def _measured_proxy(processes: Processes, name: str, options: argparse.Namespace) -> list[Row]:
    modes = ("streamed", "whole")
    if not (options.litellm / "bin/python").exists():
        why = f"no {options.litellm}: python -m venv it, and pip install 'litellm[proxy]==1.106.12' there"
        return [Row(name, mode, absent=why) for mode in modes]
    return _loaded(start_proxy(processes, name, options.litellm), modes, options)


def _loaded(server: Server, modes: tuple[str, ...], options: argparse.Namespace) -> list[Row]:
    rows = [measure(server, mode, options.connections, options.seconds) for mode in modes]
    end(server.process)
    return rows


def measure_hot_row(stack: Stack, seconds: float) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.serving.hot_row", str(seconds), str(stack.postgres.pid)]
    printed = subprocess.run(command, env=stack.env, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return found


def goals_of(rows: list[Row], holds: list[dict[str, Any]]) -> dict[str, bool]:
    """Of those goals that the run had what it takes to judge."""
    found = {(row.server, row.mode): row for row in rows if not row.absent}
    goals: dict[str, bool] = {}
    for (server, mode), row in found.items():
        if server == DOOR and mode != "whole":
            goals[f"{mode}: at most {GOAL_MS:g} ms of CPU a request"] = row.cpu_ms <= GOAL_MS
        peer = found.get(("litellm", mode))
        if server == DOOR and peer:
            is_met = row.per_core >= GOAL_TIMES * peer.per_core
            goals[f"{mode}: {GOAL_TIMES:g} times LiteLLM's requests a core"] = is_met
    if holds:
        goals[f"{GOAL_HOLDS:.0f} reservations a second on one tenant's row"] = holds[0]["per_s"] >= GOAL_HOLDS
    return goals


def print_table(rows: list[Row]) -> None:
    print(
        f"{'server':16}{'answer':>10}{'requests/s':>12}{'CPU ms':>9}{'stores ms':>11}{'per core s':>12}"
        f"{'p50 ms':>9}{'p99 ms':>9}{'events':>8}"
    )
    for row in rows:
        if row.absent:
            print(f"{row.server:16}{row.mode:>10}  {row.absent}")
            continue
        print(
            f"{row.server:16}{row.mode:>10}{row.requests_per_s:12.0f}{row.cpu_ms:9.2f}{row.store_cpu_ms:11.2f}"
            f"{row.per_core:12.0f}{row.p50_ms:9.0f}{row.p99_ms:9.0f}{row.events:8.1f}"
        )


def print_holds(holds: list[dict[str, Any]]) -> None:
    if holds:
        print(f"\n{'one hot row, four levels':28}{'a second':>10}{'CPU ms':>9}{'database ms':>13}")
    for row in holds:
        print(f"{row['what']:28}{row['per_s']:10.0f}{row['cpu_ms']:9.2f}{row['database_cpu_ms']:13.2f}")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--tenants", type=int, default=8)
    parser.add_argument("--litellm", type=Path, default=PEERS)
    parser.add_argument(
        "--only", nargs="+", choices=["door", "starlette", "litellm"], default=["door", "starlette", "litellm"]
    )
    rows, holds = measure_all(parser.parse_args())
    goals = goals_of(rows, holds)
    print_table(rows)
    print_holds(holds)
    for goal, is_met in goals.items():
        print(f"{'met' if is_met else 'MISSED':8}{goal}")
    print(json.dumps({"rows": [asdict(row) for row in rows], "holds": holds, "goals": goals}))


if __name__ == "__main__":
    main()
