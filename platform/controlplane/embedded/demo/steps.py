"""The demo's own vocabulary: a step that holds or stops the story, with a line for each."""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.embedded.terminal import Stopwatch, say


class DemoFailed(Exception):
    """A step did not hold; the text says what was expected and what was found."""


@contextmanager
def step(title: str) -> Iterator[None]:
    took = Stopwatch()
    yield
    say(f"✓ {title} ({took})")


def expect(condition: object, expected: str) -> None:
    if not condition:
        raise DemoFailed(expected)
