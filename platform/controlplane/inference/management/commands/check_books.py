"""`manage.py check_books`: each invariant of the books with its count; exit 0 only if all hold."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from controlplane.inference.books import Finding, check_books


class Command(BaseCommand):
    help = "Check that holds, usage, ledger, statements and the engine's journal agree. Exits 0 only if all do."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        report = check_books(settings.ENGINE_URL)
        if options["json"]:
            self.stdout.write(json.dumps(report.to_json(), indent=2))
        else:
            for finding in report.findings:
                self.stdout.write(_line(finding))
            for name, count in report.warnings.items():
                self.stdout.write(f"note  {count:>9,}  {name}")
            self.stdout.write("books: balanced" if report.is_balanced else "books: NOT balanced")
        if not report.is_balanced:
            sys.exit(1)


def _line(finding: Finding) -> str:
    verdict = "FAIL" if finding.broken else "ok"
    broken = f"  {finding.broken:,} broken" if finding.broken else ""
    note = f"  ({finding.note})" if finding.note else ""
    return f"{verdict:<5} {finding.checked:>9,}  {finding.number:>2} {finding.name}{broken}{note}"
