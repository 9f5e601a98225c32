"""How many pages of a sequence are read again, where every layer of the model has a sliding window.

window: keys that a token sees, itself included; None: some layer sees all, and so nothing here is bounded.
"""


def reach_of(window: int | None, page_size: int) -> int | None:
    """Pages before a page's first token that this token, and those after it, may still see."""
    return None if window is None else -(-(window - 1) // page_size)


def most_held(window: int | None, page_size: int, step_tokens: int) -> int | None:
    """Pages that a sequence needs at once: those in the window, and those that a step writes."""
    reach = reach_of(window, page_size)
    return None if reach is None else reach + 1 + -(-step_tokens // page_size)
