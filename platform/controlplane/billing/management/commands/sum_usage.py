"""`manage.py sum_usage`: what the worker does every minute, by hand; and anew, where check_books finds sums off."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from controlplane.billing.models import RollupMark
from controlplane.billing.rollup import roll_up
from tenants.scope import ALL_TENANTS, tenant_scope


class Command(BaseCommand):
    help = (
        "Sum usage up by quarters of an hour, hours and days, for the pages about it. Needed by hand only with --anew."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--anew", action="store_true", help="from the usage events alone, as if for the first time")

    @tenant_scope(ALL_TENANTS)
    def handle(self, *args: Any, **options: Any) -> None:
        if options["anew"]:
            RollupMark.objects.all().delete()
        roll_up()
        self.stdout.write("Usage is summed up.")
