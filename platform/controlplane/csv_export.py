"""Rows as CSV that a spreadsheet opens without running any of it."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from contextvars import Context, copy_context
from datetime import datetime
from decimal import Decimal
from io import StringIO
from typing import Any, Final

from django.http import StreamingHttpResponse

# What spreadsheets take for the start of a formula (OWASP, "CSV injection"), also behind blanks, which some cut off.
_FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_CUT_OFF: Final = ("\t", "\r", "\n")


def csv_lines(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The header, then a line a row."""
    buffer = StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    yield buffer.getvalue()
    for row in rows:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([cell(row[column]) for column in columns])
        yield buffer.getvalue()


def cell(value: Any) -> str:
    """Numbers as they are, also negative ones; text that looks like a formula gets an apostrophe in front."""
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat()
        case bool() | int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        case _:
            text = str(value)
            is_formula = text.startswith(_CUT_OFF) or text.lstrip(" \t\r\n\xa0\u200b\u3000\ufeff").startswith(_FORMULA)
            return f"'{text}" if is_formula else text


def csv_response(name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    return streamed(name, lines, "text/csv; charset=utf-8")


def streamed(name: str, lines: Iterable[str], content_type: str) -> StreamingHttpResponse:
    """A file to be saved. The lines are read after the view has returned: in the tenant scope that it had."""
    response = StreamingHttpResponse(_in_context(copy_context(), iter(lines)), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _in_context(context: Context, lines: Iterator[str]) -> Iterator[str]:
    while (line := context.run(next, lines, None)) is not None:
        yield line
