"""Who does the work that is sent off: checks, trials, evaluations."""


class Workers:
    """The stack's own. They were sent the work as it was committed, and need no telling."""

    def check(self, version_id: str) -> None:
        """Bring the version to its verdict, or see to it that somebody does."""

    def evaluate(self, evaluation_id: str) -> None:
        """Ask what the evaluation is about, or see to it that somebody does."""
