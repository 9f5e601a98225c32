"""The two servers with a door: Veneer's whole stack, as `make up` runs it, and vLLM."""

import json
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.comparison.adapters import AdapterFolder
from benchmarks.comparison.http_client import Door, ask_all
from benchmarks.comparison.peer import PeerFailed
from benchmarks.comparison.processes import Program, peak_bytes
from benchmarks.comparison.token_ids import by_id, by_text
from benchmarks.comparison.work import Answer, Job, Workload
from controlplane.embedded.client import ApiFailure, Client
from controlplane.embedded.credentials import OPERATOR_EMAIL
from controlplane.embedded.demo.stack import DemoStack
from controlplane.embedded.demo.steps import DemoFailed
from controlplane.embedded.ports import free_port
from controlplane.embedded.upload import UploadStuck, upload_adapter

SLOTS = 64
UPLOADS_AT_ONCE = 4
UPLOAD_SECONDS = 240.0
VLLM_START_SECONDS = 240.0
VLLM_RANKS = (8, 16, 32, 64)  # the largest ranks that it can be told to reckon with


class Veneer:
    """One stack for the whole run, with all adapters of a tenant in it."""

    name = "Veneer"

    def __init__(self, home: Path, model: Path, adapters: Sequence[AdapterFolder]) -> None:
        self._model, self._adapters = model, adapters
        self._stack = DemoStack(home, model, settings={"VENEER_ADAPTER_SLOTS": str(SLOTS)})
        self._door: Door | None = None

    def cannot(self, workload: Workload) -> str | None:
        return None

    def prepare(self, workload: Workload) -> None:
        if self._door:
            return
        try:
            self._stack.start()
            key = self._fill()
        except (DemoFailed, ApiFailure, UploadStuck, OSError) as error:
            raise PeerFailed(f"the stack could not be prepared: {error}") from error
        port = int(self._stack.door_url.rsplit(":", 1)[1])
        self._door = Door(port, key, self._model.name, by_text(self._model))

    def run(self, job: Job, seconds: float, *, with_ids: bool = False) -> list[Answer]:
        assert self._door, "prepare comes first"
        return ask_all(self._door, job, seconds, with_ids=with_ids)

    def peak_bytes(self) -> int:
        """Of all processes of the stack: engine, door, console, worker, PostgreSQL, Valkey."""
        return peak_bytes(self._stack.pid) if self._door else 0

    def stop(self) -> None:
        with suppress(DemoFailed):  # it did not end by itself, and was killed
            self._stack.stop()

    def _fill(self) -> str:
        """A tenant without limits, its adapters, and a key."""
        operator = Client(self._stack.console_url)
        operator.sign_in(OPERATOR_EMAIL, self._stack.secret("operator_password"))
        email, password = "admin@bench.example", secrets.token_urlsafe(12)
        wanted = {"slug": "bench", "name": "Benchmark", "admin_email": email, "admin_password": password}
        tenant = operator.post("/api/v1/operator/tenants", wanted)["id"]
        rates = {"input": "0.500000", "cached_input": "0.050000", "output": "1.500000"}
        operator.post("/api/v1/operator/prices", {"base_model": self._model.name, **rates})
        session = Client(self._stack.console_url, tenant_id=tenant)
        session.sign_in(email, password)
        with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
            for _ in pool.map(partial(self._upload, session), self._adapters):
                pass
        return str(session.post("/api/v1/keys", {"name": "bench", "scopes": ["inference"]})["key"])

    def _upload(self, session: Client, adapter: AdapterFolder) -> None:
        version = upload_adapter(
            session, name=adapter.name, base_model=self._model.name, folder=adapter.path, seconds=UPLOAD_SECONDS
        )
        if version["state"] != "ready":
            raise DemoFailed(f"{adapter.name} is {version['state']}: {version['report']}")


class Vllm:
    """A server for each group of workloads: without LoRA for the base, else with as many slots as it has adapters and
    the smallest largest rank that will do."""

    name = "vLLM"

    def __init__(self, python: Path, model: Path, adapters: Sequence[AdapterFolder], logs: Path) -> None:
        self._python, self._model, self._adapters, self._logs = python, model, adapters, logs
        self._program: Program | None = None
        self._door: Door | None = None
        self._group: str | None = None

    def cannot(self, workload: Workload) -> str | None:
        return None

    def prepare(self, workload: Workload) -> None:
        if self._program and self._group == workload.group:
            return
        self.stop()
        adapters = len(self._adapters) if workload.group == "many" else workload.adapters
        port, key = free_port(), secrets.token_hex(16)
        self._program = Program(
            [self._python, "-m", "vllm.entrypoints.openai.api_server", *self._options(port, adapters)],
            self._logs / f"vllm-{workload.group}.log",
            {
                "VLLM_API_KEY": key, "VLLM_CPU_KVCACHE_SPACE": "2", "HF_HUB_OFFLINE": "1", "VLLM_HOST_IP": "127.0.0.1",
                "GLOO_SOCKET_IFNAME": "lo", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
                "PATH": f"{self._python.parent}:/usr/local/bin:/usr/bin:/bin",
                # Left to itself it computes on all cores but one.
                "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
                # The OpenMP that it came with, and advises.
                "LD_PRELOAD": str(self._python.parents[1] / "lib" / "libiomp5.so"),
            },
        )  # fmt: skip
        self._door = Door(port, key, "base", by_id, {"return_tokens_as_token_ids": True})
        self._group = workload.group
        self._wait(port)

    def run(self, job: Job, seconds: float, *, with_ids: bool = False) -> list[Answer]:
        assert self._door, "prepare comes first"
        assert self._program, "prepare comes first"
        try:
            return ask_all(self._door, job, seconds, with_ids=with_ids)
        except PeerFailed as error:
            if self._program.has_ended:
                raise PeerFailed(f"{error}; it ended: {self._program.last_words()}") from error
            raise

    def peak_bytes(self) -> int:
        return peak_bytes(self._program.pid) if self._program else 0

    def stop(self) -> None:
        if self._program:
            self._program.stop()
        self._program = self._group = self._door = None

    def _options(self, port: int, adapters: int) -> list[str]:
        options = [
            "--model", str(self._model), "--served-model-name", "base", "--host", "127.0.0.1", "--port", str(port),
            "--dtype", "bfloat16", "--max-model-len", "4096", "--max-num-seqs", "64", "--enforce-eager",
        ]  # fmt: skip
        if adapters:
            used = self._adapters[:adapters]
            largest = next(rank for rank in VLLM_RANKS if rank >= max(adapter.rank for adapter in used))
            options += ["--enable-lora", "--max-loras", str(adapters), "--max-lora-rank", str(largest)]
            options += ["--lora-modules", *(json.dumps({"name": a.name, "path": str(a.path)}) for a in used)]
        return options

    def _wait(self, port: int) -> None:
        """Until it answers. Raises PeerFailed."""
        assert self._program
        end = time.monotonic() + VLLM_START_SECONDS
        while time.monotonic() < end and not self._program.has_ended:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        what = "ended" if self._program.has_ended else f"was not ready within {VLLM_START_SECONDS:.0f} s"
        raise PeerFailed(f"it {what}: {self._program.last_words()}")
