#!/usr/bin/env python3
"""Puts platform/ on the path and hands over to Django."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import execute_from_command_line  # after the path is set

    from controlplane.env import BadSetting  # after the path is set

    try:
        execute_from_command_line(sys.argv)
    except BadSetting as exc:
        sys.exit(f"veneer: {exc}")


if __name__ == "__main__":
    main()
