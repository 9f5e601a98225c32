"""What a person reads when set-up cannot go on."""


class SetupProblem(Exception):
    """The text names what is wrong and the remedy."""
