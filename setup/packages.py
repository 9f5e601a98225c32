"""`.venv` and the pinned packages in it."""

import shutil
import subprocess
import sys
from pathlib import Path

from setup.paths import PYTHON, REQUIREMENTS, VENV
from setup.problems import SetupProblem
from setup.programs import run, succeeds
from setup.stamps import digest_of_files, is_done, mark_done
from setup.terminal import Line

PIP = (str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input")
OLDEST_PIP = "pip>=24.1"
OFFLINE = "Is the package registry reachable? pip's own settings (`pip config list`) say which one is asked."


def make_venv() -> None:
    """Raises SetupProblem when this Python can make none."""
    if is_done("venv", OLDEST_PIP) and PYTHON.exists():
        return
    line = Line("virtual env")
    if not succeeds([*PIP, "--version"]):
        shutil.rmtree(VENV, ignore_errors=True)
        if not succeeds([sys.executable, "-m", "venv", VENV]):
            _make_venv_without_ensurepip()
    # Older ones have no progress that we could show.
    run(line, [*PIP, "install", "--quiet", "--upgrade", OLDEST_PIP], remedy=OFFLINE)
    mark_done("venv", OLDEST_PIP)
    line.finish(f"Python {sys.version.split()[0]}")


def _make_venv_without_ensurepip() -> None:
    """Debian keeps ensurepip in python3-venv; a pip outside can stand in for it."""
    made = succeeds([sys.executable, "-m", "venv", "--without-pip", "--clear", VENV])
    if made and succeeds([sys.executable, "-m", "pip", "--python", PYTHON, "install", "--quiet", "pip"]):
        return
    shutil.rmtree(VENV, ignore_errors=True)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise SetupProblem(
        f"{sys.executable} cannot make a virtual environment: its venv module or pip is missing. "
        f"On Debian and Ubuntu: apt-get install python{version}-venv python3-pip"
    )


def install(step: str, title: str) -> None:
    """What `requirements/<step>.txt` pins."""
    requirements = REQUIREMENTS / f"{step}.txt"
    digest = digest_of_files([requirements])
    if is_done(step, digest):
        return
    line = Line(title)
    pins = [text for text in requirements.read_text().splitlines() if "==" in text]
    # Python compiles what is imported; compiling everything would take longer than fetching it.
    command = [*PIP, "install", "--no-compile", "--progress-bar", "off", "-r", str(requirements)]
    run(line, command, count=("Collecting", "Processing"), total=len(pins), remedy=OFFLINE)
    mark_done(step, digest)
    line.finish(f"{len(pins)} packages")


def site_packages() -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True).stdout.strip())
