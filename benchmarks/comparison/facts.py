"""The machine and the software that a run's figures belong to."""

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.comparison.bound import Machine
from benchmarks.peers_setup import PINS


def facts_of(model: Path, machine: Machine, peers: Iterable[str], *, quick: bool) -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((text.split(":")[1].strip() for text in lines if "model name" in text), platform.machine())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "model": model.name, "quick": quick,
        "processor": processor, "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": round(os.getloadavg()[0], 2), "machine": asdict(machine),
        "peers": {name: list(PINS[name]) for name in peers if name in PINS},
    }  # fmt: skip


def headline(facts: dict[str, Any]) -> str:
    read, multiply = facts["machine"]["read"] / 1e9, 2 * facts["machine"]["multiply"] / 1e9
    pins = ", ".join(pin for peer in facts["peers"].values() for pin in peer)
    return (
        f"{facts['model']}, {facts['date']}: {facts['processor']}, {facts['cores']} cores, "
        f"{facts['memory_bytes'] / 1e9:.0f} GB, load average {facts['load_average']}; reads {read:.1f} GB/s, "
        f"multiplies {multiply:.0f} GFLOP/s in bf16. Peers: {pins or 'none'}."
    )
