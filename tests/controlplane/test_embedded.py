"""The services the tests stand on, and the traps of the prescribed folder names."""

import platform
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]


def test_postgres_answers_and_wants_a_password() -> None:
    with psycopg.connect(settings.DATABASE_URL) as conn:
        assert conn.execute("SELECT 40 + 2").fetchone() == (42,)


def test_postgres_refuses_a_wrong_password() -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(settings.DATABASE_URL, password="not the password")


def test_valkey_answers() -> None:
    assert redis.Redis.from_url(settings.VALKEY_URL).ping()


def test_the_folder_platform_does_not_shadow_the_standard_library() -> None:
    script = "import platform; print(platform.python_version())"
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == platform.python_version()
