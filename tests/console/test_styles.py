"""The console loads the style sheets of just those parts of Mantine that are in use, in Mantine's own order."""

import re
from pathlib import Path

import pytest

FRONTEND = Path(__file__).resolve().parents[2] / "frontend"
MANTINE = FRONTEND / "node_modules" / "@mantine"
COMPONENTS = MANTINE / "core" / "esm" / "components"
SHEETS = MANTINE / "core" / "styles"
# Belong to no component; they come first.
ALWAYS = ["baseline", "default-css-variables", "global"]
# Those of the first page and its frame, and those of all other pages.
FILES = ("styles.ts", "pageStyles.ts")
ADDITIONS = ("charts", "dates", "dropzone", "modals", "notifications")
NAMES = re.compile(r'import\s*\{([^}]*)\}\s*from "@mantine/core"')
IMPORTS = re.compile(r'from "(\.[^"]+\.mjs)"')


def sources() -> list[Path]:
    own = [path for path in (FRONTEND / "src").rglob("*.ts*") if ".test." not in path.name]
    return own + [path for name in ADDITIONS for path in (MANTINE / name / "esm").rglob("*.mjs")]


def parts_used() -> set[str]:
    named = [name for path in sources() for names in NAMES.findall(path.read_text()) for name in names.split(",")]
    return {name.strip().removeprefix("type ").split(" as ")[0].strip() for name in named}


def module_of(part: str) -> Path | None:
    """None for types and for what draws nothing."""
    candidates = (COMPONENTS / part / f"{part}.mjs", COMPONENTS / part / part / f"{part}.mjs")
    return next((path for path in candidates if path.exists()), None)


def sheets_behind(modules: list[Path]) -> set[str]:
    """Of these modules and all that they import."""
    seen: set[Path] = set()
    waiting = [path.resolve() for path in modules]
    while waiting:
        path = waiting.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        waiting += [(path.parent / name).resolve() for name in IMPORTS.findall(path.read_text())]
    names = {path.name.removesuffix(".module.mjs") for path in seen if path.name.endswith(".module.mjs")}
    return {name for name in names if (SHEETS / f"{name}.css").exists()}


def place_in_whole(sheet: str, whole: str) -> int:
    found = re.search(r"\.m_[0-9a-f]+", (SHEETS / f"{sheet}.css").read_text())
    assert found is not None, sheet
    return whole.index(found[0])


def listed_in(name: str) -> list[str]:
    return re.findall(r'"@mantine/core/styles/(\S+)\.css"', (FRONTEND / "src" / "app" / name).read_text())


def test_the_sheets_are_those_of_the_parts_in_use() -> None:
    if not MANTINE.exists():
        pytest.skip("frontend/node_modules is not there: run `npm ci` in frontend/ (`make test` does)")
    whole = (MANTINE / "core" / "styles.css").read_text()
    modules = [path for part in parts_used() if (path := module_of(part))]
    needed = ALWAYS + sorted(sheets_behind(modules), key=lambda sheet: place_in_whole(sheet, whole))
    places = {name: listed_in(name) for name in FILES}
    assert sorted(sheet for listed in places.values() for sheet in listed) == sorted(needed), (
        "the two files should import each of these once"
    )
    for name, listed in places.items():
        in_order = [sheet for sheet in needed if sheet in listed]
        remedy = "\n".join(f'import "@mantine/core/styles/{sheet}.css";' for sheet in in_order)
        assert listed == in_order, f"frontend/src/app/{name} should import:\n{remedy}"
