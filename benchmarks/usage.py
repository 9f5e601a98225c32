"""What pages about usage cost in SQL when there are many usage events, and how fast one tenant's hold row is taken.

`python -m benchmarks.usage [--events 20000] [--tenants 100] [--days 365] [--seconds 5]`

Events are generated in the embedded PostgreSQL, in the order of their time, those of all tenants mixed; the largest
tenant has a share of 1 / sqrt(tenants) of them. Each page is asked for as that tenant's owner, through the management
API, over its last 30 days unless the page says otherwise, and the milliseconds of all its statements are added up: the
median of seven, after one that warms up. Plans of its statements must not scan a big table from end to end. Prints what
summing up usage takes, two tables and, as its last line, the same as JSON. Ten million events take about 12 GB below
the folder for temporary files, and some minutes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.serving.stack import ROOT, Processes, Stack

GOAL_MS = 100.0
GOAL_PER_SECOND = 500.0


def measure(events: int, tenants: int, days: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="veneer-bench-") as path:
        folder = Path(path)
        folder.chmod(0o755)
        with Processes(folder) as processes:
            stack = Stack(processes, tenants)
            command = [
                sys.executable, "-m", "benchmarks.pages.child", str(events), str(days), str(seconds),
                str(stack.postgres.pid),
            ]  # fmt: skip
            printed = subprocess.run(command, env=stack.env, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(printed.stdout.splitlines()[-1])
    return found


def print_tables(found: dict[str, Any]) -> None:
    sums = found["sums"]
    print(f"{found['events']:,} events, {found['hot_events']:,} of them the largest tenant's")
    print(f"summed up in {sums['whole_s']:.0f} s, and again in {sums['minute_s']:.2f} s; rows by minutes of a unit:")
    print("  ".join(f"{width}: {rows:,}" for width, rows in sums["rows"].items()))
    print(f"\n{'page':44}{'SQL ms':>9}{'goal':>6}{'CPU ms':>9}{'worst':>9}{'statements':>12}  scans")
    for page in found["pages"]:
        slow = "  slow" if page["sql_ms"] > GOAL_MS else ""
        print(
            f"{page['page']:44}{page['sql_ms']:9.1f}{GOAL_MS:6.0f}{page['cpu_ms']:9.1f}{page['worst_ms']:9.1f}"
            f"{page['statements']:12}  {', '.join(page['scanned']) or 'none'}{slow}"
        )
    print(f"\n{'one hot row':44}{'a second':>9}{'CPU ms':>9}{'database ms':>12}")
    for row in found["holds"]:
        print(f"{row['what']:44}{row['per_s']:9.0f}{row['cpu_ms']:9.2f}{row['database_cpu_ms']:12.2f}")


def goals_of(found: dict[str, Any]) -> dict[str, bool]:
    return {
        f"each page below {GOAL_MS:.0f} ms": all(page["sql_ms"] <= GOAL_MS for page in found["pages"]),
        "no big table scanned": not any(each["scanned"] for each in (*found["pages"], found["sums"])),
        f"{GOAL_PER_SECOND:.0f} reservations a second": found["holds"][0]["per_s"] >= GOAL_PER_SECOND,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--tenants", type=int, default=100)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    found = measure(options.events, options.tenants, options.days, options.seconds)
    found["goals"] = goals_of(found)
    print_tables(found)
    for goal, is_met in found["goals"].items():
        print(f"{'met' if is_met else 'MISSED':8}{goal}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
