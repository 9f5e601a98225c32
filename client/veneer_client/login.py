"""Where the API is and with which key: from the environment, else as `veneer login` left it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec


class NotLoggedIn(Exception):
    """Neither the environment nor a file says whom to call."""


class Login(msgspec.Struct, frozen=True):
    """url: of the console. key: of scope `manage`; a secret."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Login({self.url})"

    @classmethod
    def find(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raises NotLoggedIn."""
        url, key = environment.get("VENEER_URL"), environment.get("VENEER_API_KEY")
        if url and key:
            return cls(url, key)
        path = file_of(environment)
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            text = "nobody is logged in: run `veneer login`, or set VENEER_URL and VENEER_API_KEY"
            raise NotLoggedIn(text) from None
        except (msgspec.MsgspecError, OSError) as error:
            raise NotLoggedIn(f"{path} cannot be read ({error}): run `veneer login` again") from None

    def save(self, environment: Mapping[str, str] = os.environ) -> Path:
        """Only its owner may read it."""
        path = file_of(environment)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - with a mode
            file.write(msgspec.json.encode(self))
        return path


def file_of(environment: Mapping[str, str]) -> Path:
    """By the XDG base directory specification."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".config")
    return Path(home) / "veneer" / "login.json"
