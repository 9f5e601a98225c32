"""Who counts energy: NVIDIA's driver (NVML) for a GPU, the processor itself (RAPL, through Linux) for a CPU."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pynvml
import torch

from engine.metering.energy import Counter, CounterFailed, EnergyMeter

log = logging.getLogger(__name__)

POWERCAP = Path("/sys/class/powercap")
# Parts of a package, and the whole platform, are left out: they would be counted twice.
_COUNTED = ("package-", "dram")
_FAULTS = (OSError, ValueError)


class RaplCounter:
    """A zone of /sys/class/powercap. Its reading is in microjoules."""

    def __init__(self, zone: Path) -> None:
        self._file = zone / "energy_uj"
        self.wraps_at: int | None = int((zone / "max_energy_range_uj").read_text())

    def read(self) -> int:
        try:
            return int(self._file.read_text())
        except _FAULTS as error:
            raise CounterFailed(f"{self._file} cannot be read: {error}") from error


class NvmlCounter:
    """A GPU's total since its driver was loaded, in millijoules. nvml: the module `pynvml`."""

    wraps_at = None

    def __init__(self, nvml: Any, uuid: str) -> None:
        """Raises CounterFailed where the driver is away, or does not know such a GPU."""
        self._nvml = nvml
        try:
            nvml.nvmlInit()
            self._gpu = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        except nvml.NVMLError as error:
            raise CounterFailed(f"NVML does not find the GPU: {error}") from error

    def read(self) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._gpu)) * 1000
        except self._nvml.NVMLError as error:
            raise CounterFailed(f"NVML does not tell the GPU's energy: {error}") from error


def rapl_counters(root: Path) -> list[RaplCounter]:
    """Packages and their memory. Raises CounterFailed where one of them cannot be read (it takes a privilege)."""
    try:
        zones = [zone for zone in sorted(root.glob("intel-rapl:*")) if (zone / "name").read_text().startswith(_COUNTED)]
        return [RaplCounter(zone) for zone in zones]
    except _FAULTS as error:
        raise CounterFailed(f"{root} cannot be read: {error}") from error


def energy_meter(device: str) -> EnergyMeter | None:
    """Of the engine's device, "cpu" or "cuda"; None where nobody counts, or nobody may ask."""
    try:
        counters = _counters(device)
        meter = EnergyMeter(counters) if counters else None
    except CounterFailed as error:
        log.info("energy is not metered: %s", error)
        return None
    if meter is None:
        log.info("energy is not metered: the %s does not count it", device)
    return meter


def _counters(device: str) -> Sequence[Counter]:
    if device != "cuda":
        return rapl_counters(POWERCAP)
    return [NvmlCounter(pynvml, str(torch.cuda.get_device_properties(0).uuid))]
