"""Helm's own renderer, by its SDK: no cluster and no binary."""

import platform
from pathlib import Path
from typing import Any

import pytest

if platform.machine() != "x86_64":
    pytest.skip("Helm's SDK has no wheel for this machine", allow_module_level=True)

import helm_python  # after the check: elsewhere it is not installed

HelmFault = helm_python.HelmError


def render(chart: Path, values: dict[str, Any], name: str = "demo") -> str:
    """All manifests that `helm install NAME CHART` would send. Raises HelmFault, as that would fail."""
    with helm_python.Chart.load(str(chart)) as loaded:
        found = loaded.render(values, name=name, namespace="default")
    return "\n---\n".join(text for file, text in sorted(found.items()) if file.endswith(".yaml"))
