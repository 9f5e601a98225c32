"""The check's own process: a stranger's files are parsed here, where a crash, a loop or a flood of memory ends nobody
else. Started by `sandbox`; one order as JSON in, one outcome as JSON out.

Standard library and `engine.adapters.format` only: it starts in a tenth of a second, without site-packages.
"""

import json
import resource
import sys
from pathlib import Path
from typing import Any

from engine.adapters.format import AdapterRefused, BaseShape, Limits, check_adapter

# Nothing that a check does raises one of these (sys.audit); whatever a parser is tricked into stops here.
_REFUSED = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "ctypes.")


def confine(memory_bytes: int, cpu_seconds: int) -> None:
    """From here on: no more memory or processor time than that, no file written, no network, no other program."""
    for limit, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(limit, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))  # ends by SIGXCPU, not by SIGKILL
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event.startswith(_REFUSED):
        raise RuntimeError(f"a check may not: {event}")


def outcome(order: dict[str, Any]) -> dict[str, Any]:
    """One of: spec; problems; away (the place cannot be read: not the adapter's fault); over."""
    try:
        base = BaseShape.from_config_file(Path(order["model_dir"]))
        spec = check_adapter(Path(order["folder"]), base, Limits(**order["limits"]))
    except AdapterRefused as refused:
        return {"problems": [problem.as_dict() for problem in refused.problems]}
    except OSError as error:
        return {"away": str(error)}
    except MemoryError:
        return {"over": "memory"}
    return {
        "spec": {
            "digest": spec.digest,
            "rank": spec.max_rank,
            "target_modules": spec.target_modules,
            "invocation": spec.invocation,
        }
    }


def main() -> None:
    order = json.load(sys.stdin)
    confine(order["memory_bytes"], order["seconds"])
    json.dump(outcome(order), sys.stdout)


if __name__ == "__main__":
    main()
