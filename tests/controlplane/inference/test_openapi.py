"""The door's description of itself: it names what the parser reads, and the door does what it says."""

import copy
import re
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controlplane.errors import InvalidRequest
from controlplane.inference import door_urls, urls
from controlplane.inference.openapi import document
from controlplane.inference.schemas import parse_chat, parse_completion
from controlplane.inference.tool_fields import read_tools
from tests.controlplane.inference.conftest import BASE, Caller, Served

DOCUMENT = document()
BODIES = DOCUMENT["components"]["schemas"]


def test_it_is_served_to_anybody_and_is_well_formed(stack: Served) -> None:
    response = httpx.get(f"{stack.url}/openapi.json")
    assert (response.status_code, response.json()) == (200, DOCUMENT)
    for name in ("ChatBody", "CompletionBody"):
        jsonschema.Draft202012Validator.check_schema(BODIES[name])


def test_every_address_is_described() -> None:
    routes = [each for route in urls.urlpatterns for each in getattr(route, "url_patterns", [route])]
    served = {f"/v1/{route.pattern}" for route in routes} | {f"/{r.pattern}" for r in door_urls.urlpatterns}
    served = {re.sub(r"<\w+:\w+>", "{id}", path) for path in served} - {"/v1/.*", "/v1/"}
    assert set(DOCUMENT["paths"]) == served


class Recorder(dict):
    """A body that remembers which of its fields somebody looked at."""

    def __init__(self, body: dict) -> None:
        super().__init__(body)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


@pytest.mark.parametrize(
    ("name", "parse", "body"),
    [
        ("ChatBody", parse_chat, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        ("CompletionBody", parse_completion, {"model": "m", "prompt": "x"}),
    ],
)
def test_it_names_exactly_what_the_parser_reads(name: str, parse: Any, body: dict) -> None:
    recorder = Recorder(body)
    parse(recorder)
    if name == "ChatBody":
        read_tools(recorder)
    assert set(BODIES[name]["properties"]) == recorder.read
    jsonschema.validate(dict(body), BODIES[name])


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_one_field_out_of_its_schema_is_refused(data: st.DataObject) -> None:
    """Whatever is no value by the schema is none by the parser."""
    name, parse, body = data.draw(
        st.sampled_from(
            [
                ("ChatBody", parse_chat, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
                ("CompletionBody", parse_completion, {"model": "m", "prompt": "x"}),
            ]
        )
    )
    field = data.draw(st.sampled_from(sorted(BODIES[name]["properties"])))
    value = data.draw(ODD)
    changed = {**body, field: value}
    if jsonschema.Draft202012Validator(BODIES[name]).is_valid(changed):
        return
    with pytest.raises(InvalidRequest):
        (parse(changed), read_tools(changed))


ODD = st.sampled_from([None, True, False, -1, 0, 1, 1.5, 2**70, "", "x", [], [1], [""], [None], {}, {"a": 1}, {"1": 5}])


def described() -> dict[str, Any]:
    """The document for a caller of this engine: random names of models would never get further than 404."""
    found = copy.deepcopy(DOCUMENT)
    for body in (*found["components"]["schemas"].values(), *_inline_bodies(found)):
        if "model" in body.get("properties", {}):
            body["properties"]["model"] = {"enum": [BASE]}
        if "guided_json" in body.get("properties", {}):  # nor would random texts of schemas, beyond 400
            body["properties"]["guided_json"] = {"type": ["object", "null"]}
    return found


def _inline_bodies(found: dict[str, Any]) -> list[dict[str, Any]]:
    posts = [path["post"] for path in found["paths"].values() if "requestBody" in path.get("post", {})]
    return [media["schema"] for post in posts for media in post["requestBody"]["content"].values()]


SCHEMA = schemathesis.openapi.from_dict(described())
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    response_headers_conformance,
]  # fmt: skip
OPERATIONS = [
    (path, method)
    for path, item in DOCUMENT["paths"].items()
    for method in item
    if path not in ("/tokenize", "/detokenize", "/openapi.json")
]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_schemathesis_finds_no_500_and_nothing_undocumented(
    stack: Served, caller: Caller, path: str, method: str
) -> None:
    """Generated requests, fit and unfit, bounded in number, the same on every run."""
    operation = SCHEMA[path][method.upper()]
    few = settings(
        max_examples=25 if method == "post" else 8, derandomize=True, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    @few
    @given(operation.as_strategy(GenerationMode.POSITIVE))
    def fit(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=stack.url, headers=caller.headers, checks=CHECKS)

    @few
    @given(operation.as_strategy(GenerationMode.NEGATIVE))
    def unfit(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=stack.url, headers=caller.headers, checks=[*CHECKS, negative_data_rejection])

    fit()
    if "requestBody" in DOCUMENT["paths"][path][method]:
        unfit()


def test_no_key_is_401_everywhere_but_where_it_says_so(stack: Served) -> None:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            response = httpx.request(method, stack.url + path.replace("{id}", "x"))
            assert response.status_code == (200 if operation.get("security") == [] else 401), path
