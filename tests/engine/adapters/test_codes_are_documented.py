"""docs/adapters.md names every code that a refusal may bear, and none that does not exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RAISED = re.compile(r'(?:Problem|HeaderError|return)\(?\s*"([a-z]+(?:_[a-z]+)+)"(?=,)')
QUOTED = re.compile(r'"([a-z]+(?:_[a-z]+)+)"')


def test_codes() -> None:
    sources = [path.read_text() for path in sorted((ROOT / "engine" / "adapters").glob("*.py"))]
    raised = {code for source in sources for code in RAISED.findall(source)}
    page = (ROOT / "docs" / "adapters.md").read_text()
    table = page[page.index("## Codes of a refusal") :]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    documented = {code for row in rows for code in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert raised <= documented
    # The control plane's own: the check's process, the trial on the engine, an import.
    rooms = [ROOT / "platform" / "controlplane" / room for room in ("adapters", "inference")]
    quoted = {word for room in rooms for path in room.glob("*.py") for word in QUOTED.findall(path.read_text())}
    assert documented - raised <= quoted
