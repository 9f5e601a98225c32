"""`make lock`: pins every package that pyproject.toml asks for, directly or not. torch and triton stay apart."""

import subprocess
import sys

from setup.packages import PIP
from setup.paths import PYTHON, REQUIREMENTS, ROOT

TOOL = "pip-tools==7.6.2"
COMMON = (
    "--quiet", "--strip-extras", "--no-header", "--no-emit-index-url", "--no-emit-find-links",
    "--annotation-style", "line", "--unsafe-package", "torch", "--unsafe-package", "triton",
    "--constraint", "requirements/torch.txt",
)  # fmt: skip


def compile_lock(name: str, *arguments: str) -> None:
    output = REQUIREMENTS / f"{name}.txt"
    command = [
        str(PYTHON),
        "-m",
        "piptools",
        "compile",
        *COMMON,
        *arguments,
        "--output-file",
        str(output),
        "pyproject.toml",
    ]
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> None:
    subprocess.run([*PIP, "install", "--quiet", TOOL], check=True)
    compile_lock("base", "--extra", "engine", *sys.argv[1:])
    compile_lock("dev", "--extra", "engine", "--extra", "dev", "--constraint", "requirements/base.txt", *sys.argv[1:])


if __name__ == "__main__":
    main()
