"""The client's types are those of the schema: `make client` makes them anew after a change of the management API."""

import json
from typing import Any

import msgspec

from setup.paths import ROOT
from veneer_client import models

SCHEMAS: dict[str, Any] = json.loads((ROOT / "frontend" / "openapi.json").read_text())["components"]["schemas"]


def test_each_type_has_the_fields_of_its_schema() -> None:
    behind = [name for name, schema in SCHEMAS.items() if schema.get("properties") and not _agrees(name, schema)]
    assert not behind, "run `make client`"


def _agrees(name: str, schema: dict[str, Any]) -> bool:
    found = getattr(models, name, None)
    if found is None:
        return False
    fields = {field.encode_name: field for field in msgspec.structs.fields(found)}
    required = {name for name, field in fields.items() if field.required}
    return {*fields} == {*schema["properties"]} and required <= {*schema.get("required", ())}
