"""`python -m setup [--dev] [--browser]`: all that `make` needs, done once. One file for each step."""

import argparse
import sys
import time

from setup.browser import prepare_browser
from setup.console import build_console
from setup.model import prepare_model
from setup.packages import install, make_venv
from setup.paths import ROOT
from setup.problems import SetupProblem
from setup.torch_build import install_torch, install_triton, wants_cuda


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m setup", description=__doc__)
    parser.add_argument("--dev", action="store_true", help="also what tests, checks and the demo need")
    parser.add_argument("--browser", action="store_true", help="also a Chromium, where root may install one")
    options = parser.parse_args()
    start = time.monotonic()
    print(f"set-up in {ROOT}", flush=True)
    try:
        _steps(dev=options.dev, browser=options.browser)
    except SetupProblem as exc:
        print(f"\nset-up stopped: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nset-up interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    print(f"set-up done ({time.monotonic() - start:.1f} s)", flush=True)
    return 0


def _steps(*, dev: bool, browser: bool) -> None:
    make_venv()
    install("base", "Python packages")
    install_torch()
    if dev or wants_cuda():
        install_triton()
    if dev:
        install("dev", "test packages")
    build_console()
    prepare_model()
    if browser:
        prepare_browser()


if __name__ == "__main__":
    sys.exit(main())
