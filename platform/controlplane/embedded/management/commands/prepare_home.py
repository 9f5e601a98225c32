"""`manage.py prepare_home`: the database's schema and accounts, in one start of Django."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from controlplane.books_currency import keep_currency
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.seed import DEMO_TENANTS, seed_operator, seed_price, seed_tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync


class Command(BaseCommand):
    help = "Migrate, make the operator and (with --demo-data) the demo tenants. Safe to repeat."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo-data", action="store_true")

    @tenant_scope(ALL_TENANTS)
    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=1)
        run_sync(keep_currency())
        credentials = Credentials(Home(settings.HOME).secrets)
        seed_operator(credentials)
        if options["demo_data"]:
            seed_price(settings.MODEL_DIR.name)
            for tenant in DEMO_TENANTS:
                seed_tenant(tenant, credentials)
