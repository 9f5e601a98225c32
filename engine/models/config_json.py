"""config.json, read field by field: what is missing, of another type or unsupported is named with its value."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.models.weights import ModelError


class ConfigJson:
    """A field that is absent takes the default that transformers gives it; where there is none, it is asked for."""

    def __init__(self, raw: Mapping[str, Any], path: Path) -> None:
        self._raw, self._path = raw, path

    @classmethod
    def read(cls, folder: Path) -> "ConfigJson":
        """Raises ModelError where the folder has no config.json that is an object."""
        path = folder / "config.json"
        try:
            raw = json.loads(path.read_text())
        except OSError as error:
            message = f"{path} cannot be read ({error.strerror}): point VENEER_MODEL at a model folder"
            raise ModelError(message) from error
        except ValueError as error:
            raise ModelError(f"{path} is not JSON: {error}") from error
        if not isinstance(raw, dict):
            raise ModelError(f"{path} holds {type(raw).__name__}, not an object")
        return cls(raw, path)

    @property
    def architecture(self) -> str:
        names = self._raw.get("architectures")
        if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
            raise self.wrong("architectures", "it must name exactly one")
        return names[0]

    def get(self, field: str, default: Any = None) -> Any:
        return self._raw.get(field, default)

    def count(self, field: str, default: int | None = None) -> int:
        """A positive integer; null means the default."""
        value = self._raw.get(field)
        value = default if value is None and default is not None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(field, "it must be a positive integer")
        return value

    def optional_count(self, field: str, default: int | None = None) -> int | None:
        """A positive integer, or None where the field is null, or absent without a default."""
        return None if self._raw.get(field, default) is None else self.count(field, default)

    def number(self, field: str, default: float) -> float:
        value = self._raw.get(field, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise self.wrong(field, "it must be a positive number")
        return float(value)

    def optional_number(self, field: str, default: float | None = None) -> float | None:
        value = self._raw.get(field, default)
        return None if value is None else self.number(field, value)

    def flag(self, field: str, default: bool = False) -> bool:
        value = self._raw.get(field)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.wrong(field, "it must be true or false")
        return value

    def only(self, field: str, *supported: object) -> None:
        """Refuse every value but these; an absent field or null is the first of them."""
        value = self._raw.get(field)
        if value is not None and value not in supported:
            raise self.wrong(field, f"supported is {supported[0]!r}")

    def wrong(self, field: str, expected: str) -> ModelError:
        return ModelError(f"{self._path}: {field} is {self._raw.get(field)!r}, {expected}")

    def error(self, message: str) -> ModelError:
        return ModelError(f"{self._path}: {message}")
