"""The policy's document as the API describes it: derived from the document itself, so that no number is forgotten."""

from dataclasses import fields
from typing import Any

from rest_framework import serializers

from policy.document import Thresholds
from policy.words import THRESHOLDS


def _field(kind: object, words: str) -> serializers.Field[Any, Any, Any, Any]:
    """A threshold as JSON has it, by its type: `int`, `Decimal | None`, `bool` or a tuple."""
    said = str(getattr(kind, "__name__", kind) if isinstance(kind, type) else kind)
    allow_null = "None" in said
    if "tuple" in said:
        return serializers.ListField(child=serializers.CharField(), help_text=words)
    if "bool" in said:
        return serializers.BooleanField(help_text=words)
    if "Decimal" in said:
        return serializers.CharField(
            help_text=f"{words} In USD.", allow_null=allow_null
        )
    return serializers.IntegerField(help_text=words, allow_null=allow_null)


def _words(name: str) -> str:
    label = THRESHOLDS[name]
    return f"{label.words}{f', {label.unit}' if label.unit else ''}."


class _Numbers(serializers.Serializer[Any]):
    """Every limit that is in force; each is inclusive, null is no limit."""


ThresholdsSerializer = type(
    "ThresholdsSerializer",
    (_Numbers,),
    {
        "__doc__": _Numbers.__doc__,
        **{
            each.name: _field(each.type, _words(each.name))
            for each in fields(Thresholds)
        },
    },
)


class PolicyWholeSerializer(serializers.Serializer[Any]):
    """A policy with everything that is in force, also what its text leaves to the default."""

    thresholds = ThresholdsSerializer()
    overrides = serializers.ListField(
        child=serializers.DictField(), help_text="Where numbers differ; later ones win."
    )
    routes = serializers.ListField(
        child=serializers.DictField(),
        help_text="The first that takes an ask decides it.",
    )
    lapse_days = serializers.IntegerField()
