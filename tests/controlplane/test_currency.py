"""Which currencies may be set, how amounts are said in them, and that nothing says dollars by itself."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from controlplane.billing.payments import payment_bounds
from controlplane.currency import LITTLE, amount_text, cents_text, checked_currency
from controlplane.env import BadSetting

ROOT = Path(__file__).resolve().parents[2]
# By ISO 4217 without a smaller unit or with thousandths, and what is no code of a currency.
REFUSED = ("JPY", "KRW", "CLP", "ISK", "XAF", "KWD", "BHD", "TND", "XAU", "XXX", "eur", "EURO", "€", "", " EUR")


def test_those_with_hundredths_are_taken() -> None:
    assert [checked_currency(code) for code in LITTLE] == list(LITTLE)
    assert all(re.fullmatch("[A-Z]{3}", code) for code in LITTLE)


@pytest.mark.parametrize("code", REFUSED)
def test_others_are_refused_with_the_variable_the_value_and_the_remedy(code: str) -> None:
    with pytest.raises(BadSetting, match=r"VENEER_CURRENCY='.*EUR, GBP.*unset it to use USD") as refused:
        checked_currency(code)
    assert f"VENEER_CURRENCY={code!r} " in str(refused.value)


@pytest.mark.parametrize("command", [["check"], ["up"]], ids=lambda command: command[0])
def test_nothing_starts_with_another(command: list[str], tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "VENEER_HOME": str(tmp_path), "VENEER_CURRENCY": "JPY"}
    done = subprocess.run(
        [sys.executable, ROOT / "manage.py", *command], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("veneer: VENEER_CURRENCY='JPY' cannot be billed in: set it to ")


def test_the_page_for_operators_lists_them() -> None:
    section = (ROOT / "docs" / "billing.md").read_text().split("## The currency\n")[1].split("\n## ")[0]
    [listed] = [line for line in section.splitlines() if line.startswith("AED")]
    assert listed.split(", ") == list(LITTLE)


@given(st.decimals(-(10**12), 10**12, places=12))
def test_amounts_keep_their_value(amount: Decimal) -> None:
    number, code = amount_text(amount).split(" ")
    assert (Decimal(number), code) == (amount, "USD")
    assert "E" not in number
    assert not re.search(r"\.\d*0$|\.$|^-0$", number)


def test_amounts_in_euros(settings: Settings) -> None:
    settings.CURRENCY = "EUR"
    assert [amount_text(Decimal(text)) for text in ("10000", "0.010", "0.000000000000")] == [
        "10000 EUR", "0.01 EUR", "0 EUR",
    ]  # fmt: skip
    assert cents_text(Decimal("1234.5")) == "1234.50 EUR"


@pytest.mark.parametrize("code", LITTLE)
def test_a_payment_is_within_what_stripe_takes(code: str, settings: Settings) -> None:
    """At most eight digits of hundredths; at least a unit, and the most is far above the least."""
    settings.CURRENCY = code
    least, most = payment_bounds()
    assert 1 <= least <= most / 1000
    assert most * 100 <= 99_999_999


# --- nothing says dollars by itself -------------------------------------------------------------------------------

# Where the word is the default of the setting. Where a sign stands before what is PostgreSQL's.
SAYS_USD = {"platform/controlplane/settings.py", "platform/controlplane/currency.py"}
SQL = {"tenants/lean_connection.py"}
WORDS = re.compile(r"\b(USD|US-?dollars?|dollars?)\b", re.IGNORECASE)
SIGN = re.compile(r"\$\{|\$\d")
PLAIN_USD = re.compile(r"\bUSD\b|[Dd]ollar|\$\d|[\"'>]\$[\"'<]")
COMMENTS = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)


def texts_of(source: str) -> Iterator[tuple[str, bool]]:
    """Every text of a module, docstrings too, which describe the API; and whether a value follows it at once."""
    tree = ast.parse(source)
    followed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part, following in zip(node.values, node.values[1:], strict=False):
                if isinstance(following, ast.FormattedValue):
                    followed.add(id(part))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, id(node) in followed


def stray(source: str) -> list[str]:
    return [
        text
        for text, is_followed in texts_of(source)
        if WORDS.search(text) or SIGN.search(text) or (is_followed and text.endswith("$"))
    ]


def test_the_search_finds_a_stray_sign() -> None:
    assert stray('raise E(f"of ${left:f} left")') == ["of $"]
    assert stray('X = "over ${total}"') == ["over ${total}"]
    assert stray('X = ("", "USD")') == ["USD"]
    assert stray('def f():\n    """Dollars, exact."""') == ["Dollars, exact."]
    assert not stray('X = rf"^[a-z]{{{n}}}$"; Y = "DO $$ BEGIN"; Z = f"{home}$"')


def test_no_text_of_the_platform_says_dollars() -> None:
    files = {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in ("platform", "tenants")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert len(files) > 300
    found = {name: stray(text) for name, text in files.items() if name not in SAYS_USD | SQL}
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_no_text_of_the_console_says_dollars() -> None:
    """Comments may, and what a page says until it knows better."""
    files = {
        path.name: COMMENTS.sub("", path.read_text())
        for path in (ROOT / "frontend" / "src").rglob("*.ts*")
        if ".test." not in path.name and path.name not in ("schema.ts", "samples.ts", "money.ts")
    }
    assert len(files) > 200
    assert {name: found for name, text in files.items() if (found := PLAIN_USD.findall(text))} == {}
