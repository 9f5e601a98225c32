"""`manage.py seed_adapters`: the demo adapters go through the same door as a tenant's own: upload, check, publish."""

import logging
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.embedded.client import Client
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.seed import DEMO_TENANTS, DemoTenant
from controlplane.embedded.upload import upload_adapter
from controlplane.env import ROOT

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Upload the demo adapters of Acme and Globex through the running console's API, where they are missing."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        credentials = Credentials(Home(settings.HOME).secrets)
        for tenant in DEMO_TENANTS:
            self._seed(tenant, Client(settings.CONSOLE_URL, key=credentials.get(tenant.key_name)))

    def _seed(self, tenant: DemoTenant, client: Client) -> None:
        base_model = settings.MODEL_DIR.name
        present = {a["name"] for a in client.get("/api/v1/adapters")["data"] if a["state"] != "empty"}
        for name in tenant.adapters:
            if name in present:
                continue
            version = upload_adapter(
                client, name=name, base_model=base_model, folder=ROOT / "examples" / "adapters" / name
            )
            if version["state"] != "ready":
                raise CommandError(f"the demo adapter {name} was refused: {version['report']}")
            log.info("adapter %s of %s is ready", name, tenant.slug)
