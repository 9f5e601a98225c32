"""Compile the CPU kernels for the machine at hand, once: a shared object whose name is the hash of all that made it."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "native"
# Never -ffast-math: linking it turns denormals off for the whole process, and small FP8 numbers become zero.
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-fopenmp", "-fPIC", "-Wno-psabi")
COMPILERS = ("g++", "c++")


class BuildError(Exception):
    """The kernels could not be compiled; the text says why and what would help."""


def load_library(folder: Path | None = None, march: str = "native") -> ctypes.CDLL:
    """The compiled kernels, for the machine or an instruction set by GCC's name. Raises BuildError.

    folder: where they are kept between starts; default `default_folder()`.
    """
    compiler = _compiler()
    place = _private(folder or default_folder())
    target = place / f"veneer-cpu-{_fingerprint(compiler, march)}.so"
    if not target.exists():
        _compile([compiler, *FLAGS, f"-march={march}"], target)
    try:
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise BuildError(
            f"the compiled kernels {target} cannot be loaded ({error}): delete the file to rebuild"
        ) from error


def default_folder() -> Path:
    home = os.environ.get("VENEER_HOME")
    return Path(home) / "kernels" if home else Path(tempfile.gettempdir()) / f"veneer-kernels-{os.getuid()}"


def _compiler() -> str:
    for name in (os.environ.get("CXX"), *COMPILERS):
        if name and (path := shutil.which(name)):
            return path
    raise BuildError("no C++ compiler was found (looked for CXX, g++, c++); `apt-get install g++` brings one")


def _private(folder: Path) -> Path:
    """Code is loaded from here, so nobody else may be able to put some there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise BuildError(f"{folder} cannot hold compiled kernels: {error.strerror}") from error
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise BuildError(f"{folder} is writable by others or not ours: `chmod go-w` it or set VENEER_HOME")
    return folder


def _fingerprint(compiler: str, march: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    digest = hashlib.sha256()
    for part in (
        version,
        " ".join([*FLAGS, march]).encode(),
        _processor(),
        *(path.read_bytes() for path in _files("*.*")),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:24]


def _processor() -> bytes:
    """What -march=native depends on, so that a home moved to another machine is built anew there."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return b""
    return b"\n".join(sorted({line for line in lines if line.startswith((b"flags", b"model name", b"Features"))}))


def _files(pattern: str) -> list[Path]:
    return sorted(SOURCES.glob(pattern))


def _compile(command: list[str], target: Path) -> None:
    """One process per source, since each takes a second or more; the result appears in one rename."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        objects = [Path(scratch) / f"{source.stem}.o" for source in _files("*.cpp")]
        commands = [
            [*command, "-c", str(source), "-o", str(out)] for source, out in zip(_files("*.cpp"), objects, strict=True)
        ]
        _run_all(commands)
        built = Path(scratch) / "kernels.so"
        _run_all([[*command, "-shared", *map(str, objects), "-o", str(built)]])
        built.replace(target)


def _run_all(commands: list[list[str]]) -> None:
    children = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for command in commands
    ]
    failures = [(child.args, text) for child in children if (text := child.communicate()[1]) and child.returncode]
    failures += [(child.args, "no message") for child in children if child.returncode and not failures]
    if failures:
        first = next((line for line in failures[0][1].splitlines() if "error" in line), failures[0][1][:200])
        raise BuildError(f"{commands[0][0]} could not compile the CPU kernels: {first.strip()}")
