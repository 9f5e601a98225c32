"""Bytes that passed a check are spared it, files of a known shape all of it but the numbers, and others nothing."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from engine.adapters.format import AdapterRefused, Checked, Limits, check_source
from engine.adapters.known_checks import KnownChecks
from engine.adapters.source import Buffer, Contents
from engine.adapters.spec import AdapterSpec
from engine.adapters.values import scan_bytes

A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
ONE, HALF, NAN = b"\x80\x3f", b"\x00\x3f", b"\xc0\x7f"


@dataclass
class Bench:
    """done: whole checks by digest; looked: bytes whose numbers were looked at."""

    draft: Any
    room: int = 256
    done: Counter[str] = field(default_factory=Counter)
    looked: int = 0

    def __post_init__(self) -> None:
        self.known = KnownChecks(self.scan, self.room, self.room)

    def scan(self, data: Buffer, dtype: str) -> tuple[bool, bool]:
        self.looked += len(data)
        return scan_bytes(data, dtype)

    def contents(self) -> Contents:
        folder: Path = self.draft.write()
        return Contents({path.name: bytearray(path.read_bytes()) for path in folder.iterdir()})

    def ask(self, contents: Contents | None = None) -> AdapterSpec:
        found = contents or self.contents()

        def check() -> Checked:
            self.done[found.digest()] += 1
            return check_source(found, self.draft.base, Limits(), self.scan)

        return self.known.spec_of(found.digest(), found, check)

    def fresh(self) -> AdapterSpec:
        return check_source(self.contents(), self.draft.base, Limits()).spec


@pytest.fixture
def bench(draft: Any) -> Bench:
    return Bench(draft)


def test_bytes_that_passed_are_not_looked_at_again(bench: Bench) -> None:
    first = bench.ask()
    looked = bench.looked
    assert bench.ask() == first == bench.fresh()
    assert (bench.done.total(), bench.looked) == (1, looked)


def test_of_another_adapter_that_was_trained_alike_the_numbers_are_looked_at(bench: Bench) -> None:
    bench.ask()
    looked = bench.looked
    bench.draft.tensors[A][2] = HALF * 128
    assert bench.ask() == bench.fresh()
    assert bench.done.total() == 1
    assert bench.looked == 2 * looked


@pytest.mark.parametrize("code", ["non_finite", "changes_nothing"])
def test_numbers_that_are_wrong_are_refused_every_time(bench: Bench, code: str) -> None:
    bench.ask()
    for name, (_, _, data) in bench.draft.tensors.items():
        if code == "non_finite":
            bench.draft.tensors[A][2] = ONE * 127 + NAN
        elif "lora_B" in name:
            bench.draft.tensors[name][2] = bytes(len(data))
    for _ in range(2):
        with pytest.raises(AdapterRefused) as refused:
            bench.ask()
        assert [problem.code for problem in refused.value.problems] == [code]


def test_a_shape_that_was_refused_is_not_remembered(bench: Bench) -> None:
    bench.draft.config["use_dora"] = True
    for _ in range(2):
        with pytest.raises(AdapterRefused):
            bench.ask()
    assert bench.done.total() == 2


def test_other_names_sizes_or_settings_are_checked_anew(bench: Bench) -> None:
    """Each of them decides what is served, and each is followed by what was there before."""
    plain = bench.ask()
    bench.draft.config["lora_alpha"] = 16
    other = bench.ask()
    assert (plain.modules[0].scaling, other.modules[0].scaling) == (2.0, 4.0)
    bench.draft.tensors = {
        name.removeprefix("base_model.model."): tensor for name, tensor in bench.draft.tensors.items()
    }
    renamed = bench.ask()
    assert renamed.modules[0].a_key == A.removeprefix("base_model.model.")
    assert bench.ask() == renamed == bench.fresh()
    assert bench.done.total() == 3
    contents = bench.contents()
    contents.files["adapter_model.safetensors"].extend(b"\0" * 2)
    with pytest.raises(AdapterRefused):
        bench.ask(Contents(contents.files))


def test_what_was_used_longest_ago_is_forgotten(draft: Any) -> None:
    bench = Bench(draft, room=2)
    for alpha in (1, 2, 1, 3, 1, 2, 3):
        bench.draft.config["lora_alpha"] = alpha
        assert bench.ask().modules[0].scaling == alpha / 4
    assert sorted(bench.done.values()) == [1, 2, 2]


def test_threads_that_load_at_once_get_their_own(draft: Any) -> None:
    bench, several = Bench(draft, room=3), []
    for alpha in range(1, 7):
        bench.draft.config["lora_alpha"] = alpha
        several.append((alpha / 4, bench.contents().files))
    wrong = []

    def work() -> None:
        for scaling, files in several * 20:
            contents = Contents(files)
            spec = bench.ask(contents)
            if (spec.modules[0].scaling, spec.digest) != (scaling, contents.digest()):
                wrong.append(scaling)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
