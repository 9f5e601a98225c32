"""Runs of the simulator: 50 in `make test`, 2,000 in `make soak`.

A failure prints its seed and the shortest script that still fails. VENEER_BOOKS_SEED runs the same again,
VENEER_BOOKS_RUNS as many as it says.
"""

import os
import secrets
import sys

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.books.simulator import Simulator

RUNS = int(os.environ.get("VENEER_BOOKS_RUNS", "50"))
STEPS = 30


@pytest.mark.timeout(600 + 3 * RUNS)
@pytest.mark.django_db(transaction=True)
def test_whatever_dies_the_books_say_what_happened_once() -> None:
    chosen = int(os.environ.get("VENEER_BOOKS_SEED") or secrets.randbits(32))
    sys.stdout.write(f"VENEER_BOOKS_SEED={chosen}\n")  # shown with a failure
    run_state_machine_as_test(
        seed(chosen)(type("SeededSimulator", (Simulator,), {})),
        settings=settings(
            max_examples=RUNS, stateful_step_count=STEPS, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), print_blob=False,
        ),
    )  # fmt: skip
