"""The console's types come from the API as it is."""

import json
from pathlib import Path

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer2

OPENAPI = Path(__file__).resolve().parents[2] / "frontend" / "openapi.json"


def test_the_consoles_schema_is_current() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    now = json.loads(OpenApiJsonRenderer2().render(schema, renderer_context={}))
    remedy = (
        "run `python manage.py spectacular --format openapi-json --file frontend/openapi.json`, "
        "then `npm run schema` in frontend/"
    )
    assert json.loads(OPENAPI.read_text()) == now, remedy
