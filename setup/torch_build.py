"""Which build of torch: the one for CUDA where a device is, the one for the CPU anywhere else; or as VENEER_TORCH says,
where an image is built on another machine than it is for."""

import os
from pathlib import Path

from setup.packages import OFFLINE, PIP
from setup.paths import REQUIREMENTS
from setup.problems import SetupProblem
from setup.programs import run, succeeds
from setup.stamps import digest_of_files, is_done, mark_done
from setup.terminal import Line

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
STEP = "torch"


def wants_cuda() -> bool:
    asked = os.environ.get("VENEER_TORCH") or "auto"
    if asked not in ("auto", "cpu", "cuda"):
        raise SetupProblem(f"VENEER_TORCH={asked!r} is unknown: use auto, cpu or cuda")
    return has_cuda_device() if asked == "auto" else asked == "cuda"


def has_cuda_device() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or succeeds(["nvidia-smi", "-L"])


def install_torch() -> None:
    cuda = wants_cuda()
    requirements = REQUIREMENTS / "torch.txt"
    digest = digest_of_files([requirements]) + ("cuda" if cuda else "cpu")
    if is_done(STEP, digest):
        return
    torch = _pin("torch")
    line = Line("torch")
    if cuda:
        print("  torch: its build for CUDA is fetched (several GB)", flush=True)
        _pip(line, torch)
        line.finish("for CUDA")
    else:
        line.finish(_install_cpu_build(line, torch))
    mark_done(STEP, digest)


def install_triton() -> None:
    """The compiler of the CUDA kernels; tests run it interpreted. A CPU that only serves does without its 190 MB."""
    triton = _pin("triton")
    if is_done("triton", triton):
        return
    line = Line("triton")
    _pip(line, triton)
    mark_done("triton", triton)
    line.finish()


def _pin(name: str) -> str:
    pins = (REQUIREMENTS / "torch.txt").read_text().splitlines()
    return next(pin for pin in pins if pin.startswith(f"{name}=="))


def _install_cpu_build(line: Line, torch: str) -> str:
    """From pip's own places when they have it, else from PyTorch's index of CPU builds, else whatever the name gets."""
    attempts = (
        ("for the CPU", (f"{torch}+cpu",)),
        ("for the CPU, from download.pytorch.org", (f"{torch}+cpu", "--index-url", CPU_INDEX)),
    )
    for note, arguments in attempts:
        line.show(note)
        try:
            _pip(line, *arguments)
        except SetupProblem:
            continue
        return note
    print(
        "  torch: no CPU build was found, so the general one is fetched (several GB, with CUDA libraries)", flush=True
    )
    _pip(line, torch)
    return "general build"


def _pip(line: Line, *arguments: str) -> None:
    run(line, [*PIP, "install", "--no-compile", "--progress-bar", "raw", *arguments], remedy=OFFLINE)
