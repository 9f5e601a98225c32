"""The secrets of one home: made once, kept in a file that only its owner may read."""

import json
import secrets
from pathlib import Path

from controlplane.embedded.home import write_private
from controlplane.embedded.problems import StackProblem

OPERATOR_EMAIL = "operator@veneer.example"


class Credentials:
    """Named secrets. `get_or_make` writes the file before it returns, so a secret in use is never lost."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> str | None:
        return self._read().get(name)

    def get_or_make(self, name: str, *, length: int = 32) -> str:
        """A hex secret of `length` bytes."""
        return self.get(name) or self.put(name, secrets.token_hex(length))

    def password(self, name: str) -> str:
        """One that a person can type."""
        return self.get(name) or self.put(name, secrets.token_urlsafe(12))

    def key_peppers(self) -> str:
        """In the form of VENEER_KEY_PEPPERS: version and secret."""
        name = "VENEER_KEY_PEPPERS"
        return self.get(name) or self.put(name, f"1:{secrets.token_hex(32)}")

    def put(self, name: str, value: str) -> str:
        write_private(self._path, json.dumps({**self._read(), name: value}, indent=2))
        return value

    def _read(self) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as exc:
            raise StackProblem(
                f"{self._path} is damaged ({exc}). It holds the keys of this home's data: restore it from a backup, "
                f"or start afresh with another VENEER_HOME."
            ) from exc
        return found
