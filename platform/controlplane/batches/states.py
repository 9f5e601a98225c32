"""What a batch may be, and become; the words are OpenAI's."""

from typing import Final

from django.db import models


class Status(models.TextChoices):
    """validating: waits for its turn. finalizing: its files are written. The last four are ends."""

    VALIDATING = "validating"
    IN_PROGRESS = "in_progress"
    CANCELLING = "cancelling"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


ENDS: Final = (Status.COMPLETED, Status.FAILED, Status.EXPIRED, Status.CANCELLED)
OPEN: Final = tuple(status for status in Status if status not in ENDS)
# From here on nobody may cancel it: it has an end, or is about to.
RUNNING: Final = (Status.VALIDATING, Status.IN_PROGRESS)


class LineState(models.TextChoices):
    """running: an attempt is under way, or was when its worker died."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
