"""Energy: counters that wrap around, begin anew and fail; whose the energy of a step is."""

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.metering import energy_counters
from engine.metering.energy import FRESH_SECONDS, MOST_WATTS, CounterFailed, EnergyMeter, StepEnergy
from engine.metering.energy_counters import NvmlCounter, energy_meter, rapl_counters
from engine.protocol import JournalLine
from tests.engine.driver import Answers, drive
from tests.engine.toy import talkative, toy_engine

JOULE = 10**6


class Fake:
    """A counter that a test turns, read a second after the last time. begins: what it says at first."""

    def __init__(self, begins: int = 0, wraps_at: int | None = None) -> None:
        self.spent, self.begins, self.wraps_at, self.seconds, self.broken = 0, begins, wraps_at, 0.0, False

    def read(self) -> int:
        if self.broken:
            raise CounterFailed("it is gone")
        said = self.begins + self.spent
        return said if self.wraps_at is None else said % self.wraps_at

    def clock(self) -> float:
        self.seconds += 1.0
        return self.seconds


def meter_of(fake: Fake, *more: Fake) -> EnergyMeter:
    return EnergyMeter([fake, *more], fake.clock)


@given(begins=st.integers(0, 10**13), used=st.lists(st.integers(0, MOST_WATTS * JOULE), max_size=30))
@pytest.mark.parametrize("wraps_at", [None, 65_532_610_987, 262_143_328_850])
def test_the_total_is_what_was_used_however_often_the_counter_wraps(
    wraps_at: int | None, begins: int, used: list[int]
) -> None:
    fake = Fake(begins, wraps_at)
    meter = meter_of(fake)
    for each in used:
        fake.spent += each
        meter.total_uj()
    assert meter.total_uj() == sum(used)


def test_several_counters_are_one_device() -> None:
    package, memory = Fake(7, 65 * 10**9), Fake(10**9)
    meter = meter_of(package, memory)
    package.spent, memory.spent = 5 * JOULE, 2 * JOULE
    assert meter.total_uj() == 7 * JOULE


def test_a_counter_that_began_anew_is_not_guessed_at() -> None:
    """Neither backwards nor as a wrap-around that nothing could have paid for."""
    for wraps_at in (None, 262_143_328_850):
        fake = Fake(200_000 * JOULE, wraps_at)
        meter = meter_of(fake)
        fake.spent = 3 * JOULE
        assert meter.total_uj() == 3 * JOULE
        fake.begins, fake.spent = 0, 1 * JOULE
        assert meter.total_uj() == 3 * JOULE
        fake.spent += 4 * JOULE
        assert meter.total_uj() == 7 * JOULE


def test_a_silence_in_which_it_may_have_wrapped_counts_nothing() -> None:
    fake = Fake(0, 65_532_610_987)
    meter = meter_of(fake)
    fake.seconds += 3600
    fake.spent = 65_532_610_987 + 5 * JOULE
    assert meter.total_uj() == 0
    fake.spent += 5 * JOULE
    assert meter.total_uj() == 5 * JOULE


def test_a_counter_that_fails_ends_the_metering() -> None:
    fake = Fake()
    meter = meter_of(fake)
    fake.broken = True
    assert meter.total_uj() is None
    fake.broken = False
    assert meter.total_uj() is None, "what is missing would be taken for thrift"
    fake.broken = True
    with pytest.raises(CounterFailed):
        meter_of(fake)


def test_a_reading_is_kept_for_a_moment() -> None:
    now, reads = [0.0], [0]

    class Counted:
        wraps_at = None

        def read(self) -> int:
            reads[0] += 1
            return reads[0]

    meter = EnergyMeter([Counted()], lambda: now[0])
    for _ in range(5):
        meter.total_uj()
    now[0] = FRESH_SECONDS
    meter.total_uj()
    assert reads[0] == 2


# --- whose it is --------------------------------------------------------------------------------------------------


def test_steps_that_overlap_share_no_joule_and_idling_is_nobodys() -> None:
    fake = Fake()
    steps = StepEnergy(meter_of(fake))
    steps.begin()
    fake.spent = 5
    steps.begin()
    fake.spent = 10
    assert steps.end() == 10
    fake.spent = 16
    assert steps.end() == 6
    fake.spent = 30
    steps.begin()
    fake.spent = 33
    assert steps.end() == 3


def test_without_a_meter_nothing_is_known() -> None:
    steps = StepEnergy(None)
    steps.begin()
    assert steps.end() is None


@pytest.mark.parametrize("overlaps", [None, "late"])
def test_all_requests_together_used_what_the_device_did_while_it_worked(tmp_path: Path, overlaps: Any) -> None:
    fake, dice = Fake(), random.Random(0)
    toy, answers = toy_engine(tmp_path, kv_pool_tokens=64, overlaps=overlaps, energy=meter_of(fake)), Answers()
    busy, idle = [0], 0

    def work(batch: object) -> None:
        spent = dice.randrange(1, 900 * JOULE)
        fake.spent += spent
        busy[0] += spent

    toy.model.fault = work
    for each in talkative(20, 8, adapters="abc"):
        toy.engine.add(each)
        while not toy.engine.is_idle:
            answers.take(toy.engine.step())
        fake.spent += 50 * JOULE
        idle += 50 * JOULE
    for each in talkative(30, 8, adapters="abc")[20:]:
        toy.engine.add(each)
    drive(toy, answers)
    used = [line.usage for line in toy.journal.read(0, 99)]
    assert len(used) == 30
    assert sum(usage.energy_uj or 0 for usage in used) == busy[0] == fake.spent - idle
    assert all(0 < (usage.prefill_uj or 0) <= (usage.energy_uj or 0) for usage in used)
    assert any((usage.prefill_uj or 0) < (usage.energy_uj or 0) for usage in used)
    joules = toy.engine.metrics.registry.get_sample_value("veneer_engine_energy_joules_total", {"tenant": "t"})
    assert joules == pytest.approx(busy[0] / JOULE)


def test_what_a_failing_counter_missed_is_not_in_the_journal(tmp_path: Path) -> None:
    fake = Fake()
    toy, answers = toy_engine(tmp_path, energy=meter_of(fake)), Answers()
    first, second = talkative(2, 8)
    toy.engine.add(first)
    drive(toy, answers)
    toy.engine.add(second)
    answers.take(toy.engine.step())
    fake.broken = True
    drive(toy, answers)
    known, unknown = (line.usage for line in toy.journal.read(0, 9))
    assert (known.energy_uj, known.prefill_uj) == (0, 0)
    assert (unknown.energy_uj, unknown.prefill_uj) == (None, None)


def test_a_line_of_before_energy_was_metered_is_read_yet() -> None:
    old = b'{"type":"journal_line","position":1,"request_id":"r","tenant":"t","adapter_version":null,"usage":{"prompt_tokens":1,"cached_tokens":0,"completion_tokens":1,"device_ns":5},"finish_reason":"stop","started_at":0,"finished_at":1}'  # noqa: E501  # one line, as it was written
    assert msgspec.json.decode(old, type=JournalLine).usage.energy_uj is None


# --- who counts ---------------------------------------------------------------------------------------------------


def zone(root: Path, folder: str, name: str, energy: str = "1000000", most: str = "262143328850") -> Path:
    path = root / folder
    path.mkdir()
    for file, text in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", most)):
        (path / file).write_text(f"{text}\n")
    return path


def test_packages_and_their_memory_are_counted_once(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", "7")
    zone(tmp_path, "intel-rapl:0:0", "core", "100")
    zone(tmp_path, "intel-rapl:0:1", "dram", "30", "65532610987")
    zone(tmp_path, "intel-rapl:1", "psys", "900")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", "8")
    found = rapl_counters(tmp_path)
    assert [(counter.read(), counter.wraps_at) for counter in found] == [(7, 262_143_328_850), (30, 65_532_610_987)]
    (package / "energy_uj").write_text("nonsense")
    with pytest.raises(CounterFailed, match="energy_uj cannot be read"):
        found[0].read()


def test_a_processor_that_nobody_may_ask_has_no_meter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_counters, "POWERCAP", tmp_path / "none")
    assert energy_meter("cpu") is None
    monkeypatch.setattr(energy_counters, "POWERCAP", tmp_path)
    package = zone(tmp_path, "intel-rapl:0", "package-0")
    assert energy_meter("cpu") is not None
    (package / "energy_uj").unlink()
    (package / "energy_uj").mkdir()  # what root cannot read, either
    assert energy_meter("cpu") is None


class NvmlError(Exception):
    pass


def nvml(energy: Callable[[str], int], known: str = "GPU-1-2") -> Any:
    def handle(uuid: str) -> str:
        if uuid != known:
            raise NvmlError("not found")
        return uuid

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetTotalEnergyConsumption=energy,
    )


def not_supported(gpu: str) -> int:
    raise NvmlError("not supported")


def test_a_gpu_is_asked_for_its_millijoules() -> None:
    counter = NvmlCounter(nvml(lambda gpu: 1234), "1-2")
    assert (counter.read(), counter.wraps_at) == (1_234_000, None)
    with pytest.raises(CounterFailed, match="not supported"):
        NvmlCounter(nvml(not_supported), "1-2").read()
    with pytest.raises(CounterFailed, match="does not find"):
        NvmlCounter(nvml(not_supported), "another")


def test_the_gpu_is_the_one_that_the_engine_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its UUID: the numbers of CUDA and of NVML may differ."""
    monkeypatch.setattr(energy_counters, "pynvml", nvml(lambda gpu: 5, known="GPU-f00"))
    properties = {"uuid": "f00"}
    monkeypatch.setattr(
        energy_counters.torch.cuda, "get_device_properties", lambda index: SimpleNamespace(**properties)
    )
    assert energy_meter("cuda") is not None
    properties["uuid"] = "ba5"
    assert energy_meter("cuda") is None
