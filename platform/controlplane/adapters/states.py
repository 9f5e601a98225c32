"""The states of an adapter version and the only ways between them."""

from typing import Final

from django.db import models


class State(models.TextChoices):
    """uploading: parts arrive, or are fetched. checking: complete, a worker reads it, then the engine tries it.

    ready: may be served. rejected: there were problems (the report has them). deleted: gone for the tenant, kept for
    its bills.
    """

    UPLOADING = "uploading"
    CHECKING = "checking"
    READY = "ready"
    REJECTED = "rejected"
    DELETED = "deleted"

    @classmethod
    def live(cls) -> list["State"]:
        """Those a tenant can see."""
        return [state for state in cls if state is not cls.DELETED]


TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.UPLOADING: frozenset({State.CHECKING, State.REJECTED, State.DELETED}),
    State.CHECKING: frozenset({State.READY, State.REJECTED, State.DELETED}),
    State.READY: frozenset({State.DELETED}),
    State.REJECTED: frozenset({State.DELETED}),
    State.DELETED: frozenset(),
}


def sources_of(state: State) -> list[State]:
    """The states from which `state` may be reached, for a conditional update."""
    return [source for source, targets in TRANSITIONS.items() if state in targets]
