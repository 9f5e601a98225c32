"""`make client`: the client's types from the management API's schema, by datamodel-code-generator, kept apart."""

import subprocess
import sys
import venv

from setup.paths import ROOT, home

TOOL = "datamodel-code-generator==0.89.0"
OPTIONS = (
    "--input-file-type", "openapi", "--openapi-scopes", "schemas", "--output-model-type", "msgspec.Struct",
    "--target-python-version", "3.11", "--keyword-only", "--strict-nullable", "--enum-field-as-literal", "all",
    "--use-union-operator", "--use-standard-collections", "--use-msgspec-nullable-enum-alias",
    "--deserialize-default-values", "decimal", "--use-schema-description", "--use-double-quotes", "--disable-timestamp",
)  # fmt: skip


def main() -> None:
    place = home() / "tools" / "client-models"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", TOOL], check=True)
    schema, out = ROOT / "frontend" / "openapi.json", ROOT / "client" / "veneer_client" / "models.py"
    command = [python, "-m", "datamodel_code_generator", "--input", schema, "--output", out, *OPTIONS]
    subprocess.run([*map(str, command)], check=True)


if __name__ == "__main__":
    sys.exit(main())
