"""`manage.py demo` (what `make demo` runs): the whole story without hands, in a throw-away home, on free ports."""

import shutil
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import openai
from django.conf import settings
from django.core.management.base import BaseCommand

from controlplane.embedded.client import ApiFailure
from controlplane.embedded.demo.kills import CHILDREN
from controlplane.embedded.demo.steps import DemoFailed
from controlplane.embedded.demo.story import tell
from controlplane.embedded.terminal import complain, show
from controlplane.embedded.upload import UploadStuck


class Command(BaseCommand):
    help = "Boot, upload, ask, limit, revoke, close the books; exit 0 only if every step held."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--kill", choices=CHILDREN, help="kill -9 this child again and again during the load")
        parser.add_argument("--keep", action="store_true", help="leave the home behind, with its logs")

    def handle(self, *args: Any, **options: Any) -> None:
        home = Path(tempfile.mkdtemp(prefix="veneer-demo-"))
        home.chmod(0o711)  # PostgreSQL walks through it as another user when we are root
        try:
            line = tell(home, settings.MODEL_DIR, kill=options["kill"])
        except (DemoFailed, ApiFailure, UploadStuck, openai.OpenAIError) as exc:
            complain(f"demo: FAILED: {exc}\nThe stack's logs are in {home}/logs.")
            sys.exit(1)
        if not options["keep"]:
            shutil.rmtree(home, ignore_errors=True)
        show(line)
