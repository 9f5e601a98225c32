"""What a person at the terminal reads instead of a traceback."""


class StackProblem(Exception):
    """The stack cannot start or go on. The text names what is wrong and the remedy."""


class StopRequested(Exception):
    """Ctrl-C or SIGTERM arrived while something was being waited for."""
