"""A Chromium for the console's tests and for `make demo`: the system's, or Debian's where root may install it."""

import os
import shutil

from setup.problems import SetupProblem
from setup.programs import run
from setup.terminal import Line

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APT = {"DEBIAN_FRONTEND": "noninteractive"}


def find_browser() -> str | None:
    return os.environ.get("VENEER_CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


def prepare_browser() -> None:
    """Never fails: who needs the browser says what its absence means."""
    if find_browser():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        line = Line("Chromium")
        try:
            run(line, ["apt-get", "update", "-q"], env=APT)
            run(line, ["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"], env=APT)
            line.finish("installed with apt-get")
        except SetupProblem as exc:
            print(f"  Chromium: apt-get could not install it.\n{exc}", flush=True)
    if not find_browser():
        print(f"  NO BROWSER: none of {', '.join(NAMES)} is here. Install one, for example: apt-get install chromium")
