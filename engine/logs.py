"""Structured logs: one JSON object per line on standard error."""

import logging

from pythonjsonlogger.json import JsonFormatter


def set_up_logs(level: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(
            "%(asctime)s %(levelname)s %(name)s %(message)s",
            rename_fields={"asctime": "at", "levelname": "level", "name": "logger"},
            static_fields={"process": "engine"},
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
