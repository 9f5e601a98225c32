"""The process in which answers are held against a tenant's JSON schema. Started by `answer_checks`; one order as JSON
in, a verdict for each text out."""

import json
import resource
import sys
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry


def confine(memory_bytes: int, seconds: int) -> None:
    """From here on: no more memory or processor time than that, and no file or socket that is not open already."""
    for limit, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
        (resource.RLIMIT_CPU, seconds),
    ):
        resource.setrlimit(limit, (most, most))


def verdict(validator: Draft202012Validator, text: str) -> bool | None:
    try:
        validator.validate(json.loads(text))
    except (ValueError, ValidationError):
        return False
    except Exception:  # a schema may refer to what is not there, or to itself
        return None
    return True


def main() -> None:
    order: dict[str, Any] = json.load(sys.stdin)
    # A registry of its own: without one, a reference would be fetched from wherever it points to.
    validator = Draft202012Validator(order["schema"], registry=Registry())
    Draft202012Validator({"type": "null"}, registry=Registry()).validate(None)  # loads what it loads late
    confine(order["memory_bytes"], order["seconds"])
    json.dump([verdict(validator, text) for text in order["texts"]], sys.stdout)


if __name__ == "__main__":
    main()
