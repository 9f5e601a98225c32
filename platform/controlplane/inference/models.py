"""How far the engines' journals have been read."""

from django.db import models
from django.db.models.functions import Now


class JournalCursor(models.Model):
    """Every line of this engine's journal up to `position` has had its effect; moved in the effect's transaction."""

    engine_id = models.CharField(primary_key=True, max_length=64)
    position = models.BigIntegerField(db_default=0)
    moved_at = models.DateTimeField(db_default=Now())
