"""What drafting has saved and lost, so that it never costs more than a set share of the time.

The controller's prices are a model: rows are taken to cost alike, drafts to be accepted as they were. Where that is not
so (a matrix product in tiles of eight rows, a change of subject), a draft loses time though it promised to gain. The
account bounds the loss whatever the reason, as drafts are only made while it is not overdrawn.
"""

# The promise is 2 % at most, and clocks are noisy.
ALLOWED = 0.01
# What was saved earlier pays for losses of at most so many plain steps: a text that copied is no licence to lose on the
# next.
MOST_STEPS = 2.0


class Account:
    """Balance in seconds. It starts empty, which allows a first draft. allowed: share of all time that may be lost."""

    def __init__(self, allowed: float = ALLOWED) -> None:
        self._allowed, self._balance = allowed, 0.0

    @property
    def allows_drafts(self) -> bool:
        return self._balance >= 0.0

    def saw(self, saved: float, seconds: float, plain: float) -> None:
        """A step of `seconds` saved so many against plain ones, or lost, below 0; a plain one takes `plain`."""
        self._balance = min(self._balance + saved + self._allowed * seconds, MOST_STEPS * plain)
