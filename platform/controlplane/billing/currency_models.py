"""Which currency the books are in."""

from django.db import models


class BooksCurrency(models.Model):
    """One row. Every amount that is kept anywhere is in `currency`. Tells nothing of a tenant."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    currency = models.CharField(max_length=3)
    since = models.DateTimeField()
