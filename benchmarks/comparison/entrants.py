"""The servers that take part: how each is made of the model and the adapters of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison.adapters import AdapterFolder
from benchmarks.comparison.gguf_files import write_adapter, write_model
from benchmarks.comparison.in_process import InProcess
from benchmarks.comparison.peer import Peer
from benchmarks.comparison.servers import Veneer, Vllm
from benchmarks.peers_setup import peer_python
from engine.capacity import Shape


@dataclass(frozen=True)
class Room:
    """Where everything of this run lies until it ends."""

    folder: Path
    model: Path
    shape: Shape
    adapters: list[AdapterFolder]
    threads: int

    def folder_of(self, name: str) -> Path:
        found = self.folder / name
        found.mkdir(exist_ok=True)
        return found

    def settings(self, model: Path, adapters: dict[str, str]) -> dict[str, Any]:
        return {"model": str(model), "adapters": adapters, "threads": self.threads}

    @property
    def peft_settings(self) -> dict[str, Any]:
        return self.settings(self.model, {adapter.name: str(adapter.path) for adapter in self.adapters})


def make_veneer(room: Room) -> Peer:
    home = room.folder_of("veneer")
    home.chmod(0o711)  # PostgreSQL walks through it as another user when we are root
    return Veneer(home, room.model, room.adapters)


def make_vllm(room: Room) -> Peer:
    return Vllm(built_python("vllm"), room.model, room.adapters, room.folder_of("logs"))


def make_peft(room: Room) -> Peer:
    logs = room.folder_of("logs")
    name = "transformers + PEFT"
    return InProcess(name, built_python("peft"), "peft_worker", room.peft_settings, logs, is_static=True)


def make_llama(room: Room) -> Peer:
    python, folder = built_python("llama"), room.folder_of("gguf")
    write_model(room.model, folder / "model.gguf")
    # It uses no more than one adapter at a time.
    for adapter in room.adapters[:1]:
        write_adapter(adapter, folder / f"{adapter.name}.gguf", room.shape)
    settings = room.settings(
        folder / "model.gguf", {adapter.name: str(folder / f"{adapter.name}.gguf") for adapter in room.adapters[:1]}
    )
    return InProcess("llama.cpp", python, "llama_worker", settings, room.folder_of("logs"), one_set=True)


class NotThere(Exception):
    """A peer's environment has not been built."""


def built_python(name: str) -> Path:
    if found := peer_python(name):
        return found
    raise NotThere("it is not set up here: `make bench-setup` builds it")


MAKERS = {"veneer": make_veneer, "vllm": make_vllm, "peft": make_peft, "llama": make_llama}
