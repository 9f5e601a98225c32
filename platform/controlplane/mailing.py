"""Mails that wait in the database are sent one by one."""

from collections.abc import Callable


def send_due(send_one: Callable[[], bool | None], limit: int) -> int:
    """send_one: whether the next that is due went out; None where none is due. Returns how many went out."""
    sent = 0
    for _ in range(limit):
        outcome = send_one()
        if outcome is None:
            break
        sent += outcome
    return sent
