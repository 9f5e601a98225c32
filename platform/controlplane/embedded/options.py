"""What `make up` may be told through the environment, read and checked before anything starts."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from controlplane.embedded.home import Home
from controlplane.embedded.ports import is_busy
from controlplane.embedded.problems import StackProblem
from controlplane.env import BadSetting, env_bool, env_int, env_str

DEMO_MODEL = "SmolLM2-135M-Instruct"  # what the demo adapters were trained on
DEVICES = ("auto", "cpu", "cuda")
COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True, kw_only=True)
class Options:
    """database_url and valkey_url: None = embedded. demo_data: make the tenants Acme and Globex once.
    adapter_slots: adapters that one batch can mix.
    metrics_port: where the engine answers Prometheus; None = nowhere."""

    console_port: int
    door_port: int
    database_url: str | None
    valkey_url: str | None
    model: Path
    device: str
    exact: bool
    max_rank: int
    max_saved_bytes: int
    demo_data: bool
    adapter_slots: int = 32
    metrics_port: int | None = None

    @property
    def demo_adapters(self) -> bool:
        """Adapters belong to one base model: with another one the demo tenants start without."""
        return self.demo_data and self.model.name == DEMO_MODEL

    @property
    def console_url(self) -> str:
        return f"http://127.0.0.1:{self.console_port}"

    @property
    def door_url(self) -> str:
        return f"http://127.0.0.1:{self.door_port}"


def read_options(home: Home, *, demo_data: bool) -> Options:
    """Raises StackProblem naming the variable, its value and the remedy."""
    try:
        return Options(
            console_port=_port("VENEER_CONSOLE_PORT", 8000),
            door_port=_port("VENEER_DOOR_PORT", 8001),
            database_url=os.environ.get("DATABASE_URL") or None,
            valkey_url=os.environ.get("VALKEY_URL") or None,
            model=Path(env_str("VENEER_MODEL", str(home.path / "models" / DEMO_MODEL))).absolute(),
            device=_device(),
            exact=env_bool("VENEER_EXACT", False),
            max_rank=env_int("VENEER_MAX_RANK", 64),
            max_saved_bytes=env_int("VENEER_MAX_SAVED_BYTES", 256_000_000),
            demo_data=demo_data,
            adapter_slots=env_int("VENEER_ADAPTER_SLOTS", 32),
            metrics_port=_port("VENEER_METRICS_PORT", 9100) if os.environ.get("VENEER_METRICS_PORT") else None,
        )
    except BadSetting as exc:
        raise StackProblem(str(exc)) from exc


def check_options(options: Options) -> None:
    """What would otherwise fail half-way. Raises StackProblem."""
    ports = {
        "VENEER_CONSOLE_PORT": options.console_port,
        "VENEER_DOOR_PORT": options.door_port,
        "VENEER_METRICS_PORT": options.metrics_port,
    }
    for variable, port in ports.items():
        if port is not None and is_busy(port):
            raise StackProblem(
                f"port {port} is taken by another program. Stop that program, or choose another port: "
                f"{variable}={port + 10} make up"
            )
    if not (options.model / "config.json").exists():
        raise StackProblem(
            f"there is no model in {options.model} (config.json is missing). `make setup` prepares the default one; "
            f"VENEER_MODEL names a Hugging Face folder of your own."
        )


def compiler_warning() -> str | None:
    if any(shutil.which(name) for name in COMPILERS):
        return None
    return (
        "no C++ compiler found (looked for c++, g++, clang++): the engine takes its slower path on the CPU. "
        "Install one to speed it up, for example: apt-get install g++"
    )


def _port(variable: str, default: int) -> int:
    port = env_int(variable, default)
    if not 1 <= port <= 65535:
        raise BadSetting(f"{variable}={port} is not a port; use 1 to 65535, or unset it to use {default}")
    return port


def _device() -> str:
    device = env_str("VENEER_DEVICE", "auto")
    if device not in DEVICES:
        raise BadSetting(f"VENEER_DEVICE={device!r} is unknown; use one of {', '.join(DEVICES)}")
    return device
