"""Peers that have no server of their own: a process of ours calls them, and they are spared HTTP."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.comparison.work import Answer, Job, Workload, adapter_names
from benchmarks.comparison.worker import Worker


class InProcess:
    """settings: model, adapters (name -> path), threads; each group of workloads gets one, all or none of them.

    one_set: a batch of it has one adapter set. is_static: nothing joins a batch that runs.
    """

    def __init__(
        self, name: str, python: Path, module: str, settings: dict[str, Any], logs: Path, *,
        one_set: bool = False, is_static: bool = False,
    ) -> None:  # fmt: skip
        self.name, self._python, self._module, self._settings, self._logs = name, python, module, settings, logs
        self._one_set, self._is_static = one_set, is_static
        self._worker: Worker | None = None
        self._group: str | None = None

    def cannot(self, workload: Workload) -> str | None:
        if self._one_set and workload.adapters > 1:
            return "one adapter set in a batch"
        if self._is_static and workload.late:
            return "nothing joins a batch that runs"
        return None

    def prepare(self, workload: Workload) -> None:
        if self._worker and self._group == workload.group:
            return
        self.stop()
        names = self._settings["adapters"] if workload.group == "many" else adapter_names(workload.adapters)
        chosen = {name: self._settings["adapters"][name] for name in names}
        log = self._logs / f"{self._module}.log"
        self._worker = Worker(self._python, self._module, self._settings | {"adapters": chosen}, log)
        self._group = workload.group

    def run(self, job: Job, seconds: float, *, with_ids: bool = False) -> list[Answer]:
        assert self._worker, "prepare comes first"
        found = self._worker.call(asdict(job), seconds)
        return [
            Answer(each["asked"], tuple(each["times"]), len(each["ids"]), tuple(each["ids"]))
            for each in found["answers"]
        ]

    def peak_bytes(self) -> int:
        return self._worker.peak_bytes() if self._worker else 0

    def stop(self) -> None:
        if self._worker:
            self._worker.stop()
        self._worker = self._group = None
