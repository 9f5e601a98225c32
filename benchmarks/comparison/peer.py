"""What the benchmark knows of a server, whichever it is."""

from typing import Protocol

from benchmarks.comparison.work import Answer, Job, Workload


class PeerFailed(Exception):
    """It crashed, refused or took too long; the text says which. It is asked nothing more."""


class Peer(Protocol):
    """One server under test. `prepare` may start it anew with the settings that suit a workload best."""

    name: str

    def cannot(self, workload: Workload) -> str | None:
        """Why it cannot do this work, or None."""

    def prepare(self, workload: Workload) -> None:
        """Raises PeerFailed."""

    def run(self, job: Job, seconds: float, *, with_ids: bool = False) -> list[Answer]:
        """Answers in the order of the job. Raises PeerFailed, also when it takes longer than `seconds`."""

    def peak_bytes(self) -> int:
        """The most memory that each of its processes has held, added up."""

    def stop(self) -> None:
        """May be called at any time, and twice."""
