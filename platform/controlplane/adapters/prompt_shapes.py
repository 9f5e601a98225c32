"""How prompts and sets of them look on the wire."""

from typing import Any, Final

from rest_framework import serializers

from controlplane.adapters.evaluation_models import PromptSet
from controlplane.adapters.prompt_sets import MAX_CHARS, MAX_PROMPTS, MAX_SET_CHARS
from controlplane.adapters.schema_fields import SchemaField

_MAX_EXPECTED: Final = 1000
_MAX_MESSAGES: Final = 50
_ROLES: Final = ("system", "user", "assistant")


class KnownFields(serializers.Serializer[Any]):
    """A misspelt field is refused: a check that is not made would pass for one that was."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = set(data) - set(self.fields) if isinstance(data, dict) else set()
        if unknown:
            name = sorted(map(str, unknown))[0][:50]
            raise serializers.ValidationError({name: f"unknown; there is {', '.join(self.fields)}"})
        return super().to_internal_value(data)


class PromptMessageShape(KnownFields):
    role = serializers.ChoiceField(choices=_ROLES)
    content = serializers.CharField(max_length=MAX_CHARS, trim_whitespace=False)


class PromptShape(KnownFields):
    """Either messages, for the chat template, or a plain prompt. contains: a text that a right answer has in it.
    json_schema: what a right answer follows, being JSON as a whole."""

    messages = serializers.ListField(
        child=PromptMessageShape(), required=False, allow_empty=False, max_length=_MAX_MESSAGES
    )
    prompt = serializers.CharField(max_length=MAX_CHARS, trim_whitespace=False, required=False)
    contains = serializers.CharField(max_length=_MAX_EXPECTED, trim_whitespace=False, required=False)
    json_schema = SchemaField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("messages" in attrs) == ("prompt" in attrs):
            raise serializers.ValidationError("send either messages, or prompt")
        size = _chars(attrs)
        if size > MAX_CHARS:
            raise serializers.ValidationError({"messages": f"{size} characters; a prompt may have {MAX_CHARS}"})
        return attrs


def _chars(prompt: dict[str, Any]) -> int:
    return len(prompt.get("prompt", "")) + sum(len(each["content"]) for each in prompt.get("messages", ()))


class PromptSetInput(KnownFields):
    name = serializers.RegexField(
        r"^[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,61}[A-Za-z0-9])?$",
        error_messages={
            "invalid": "take 1 to 63 letters, digits, blanks, '.', '_', '-', a letter or digit at each end"
        },
    )
    prompts = serializers.ListField(child=PromptShape(), allow_empty=False, max_length=MAX_PROMPTS)

    class Meta:
        ref_name = "CreatePromptSet"

    def validate_prompts(self, prompts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        size = sum(map(_chars, prompts))
        if size > MAX_SET_CHARS:
            raise serializers.ValidationError(f"{size} characters in all; a set may have {MAX_SET_CHARS}")
        return prompts


class PromptSetRowShape(serializers.Serializer[Any]):
    """size: prompts in it."""

    id = serializers.CharField()
    adapter_id = serializers.CharField()
    name = serializers.CharField()
    size = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class PromptSetShape(PromptSetRowShape):
    prompts = PromptShape(many=True)


def prompt_set_row(found: PromptSet) -> dict[str, Any]:
    fields = {name: getattr(found, name) for name in ("id", "adapter_id", "name", "created_at")}
    return {**fields, "size": len(found.prompts)}


def prompt_set_body(found: PromptSet) -> dict[str, Any]:
    return {**prompt_set_row(found), "prompts": found.prompts}
