"""How the API shows rows: what the fields of a serializer do is found out once for its class, not for every row."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from rest_framework import serializers

T = TypeVar("T")
Show = Callable[[Any, Any], Any]


class Month(serializers.CharField):
    """A calendar month (UTC) as addresses and answers write it."""

    def __init__(self) -> None:
        super().__init__(help_text="Such as 2026-11.")

    def to_representation(self, value: Any) -> str:
        """The year and the month of its first day."""
        return f"{value:%Y-%m}"


class OutputSerializer(serializers.Serializer[T]):
    """A serializer that only shows: its answers are the framework's, in a fraction of the time.

    The framework copies all fields for each serializer and asks each of them anew how to read each row. Here the fields
    of a class are made once in a process. Only methods of the outermost serializer find the call's context.
    """

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """The row as JSON's types, field by field in the order of the class."""
        shown = {}
        for name, show in _shows(type(self)):
            try:
                shown[name] = show(self, instance)
            except serializers.SkipField:
                continue
        return shown


@cache
def _shows(kind: type[serializers.Serializer[Any]]) -> tuple[tuple[str, Show], ...]:
    return tuple(
        (name, _show(field))
        for name, field in kind().fields.items()
        if not field.write_only
    )


def _show(field: Any) -> Show:
    if isinstance(field, serializers.SerializerMethodField):
        name = field.method_name
        return lambda serializer, row: getattr(serializer, name)(row)
    read, convert = _reader(field), _converter(field)

    def show(serializer: object, row: Any) -> Any:
        value = read(row)
        return None if value is None else convert(value)

    return show


def _reader(field: Any) -> Callable[[Any], Any]:
    """How a field reads a row; whatever is not a plain attribute or key is left to the framework, defaults included."""
    names = field.source_attrs

    def read(row: Any) -> Any:
        value = row
        try:
            for name in names:
                value = value[name] if type(value) is dict else getattr(value, name)
                if callable(value):
                    return field.get_attribute(row)
        except (AttributeError, KeyError, ObjectDoesNotExist):
            return field.get_attribute(row)
        return value

    return read if names else field.get_attribute


def _converter(field: Any) -> Callable[[Any], Any]:
    if type(field) is serializers.CharField:
        return str
    if type(field) is serializers.IntegerField:
        return int
    if type(field) is serializers.DateTimeField:
        return _moments(field.to_representation)
    convert: Callable[[Any], Any] = field.to_representation
    return convert


def _moments(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Times of the database, which are in UTC as all that is shown, without a look at their zone."""

    def shown(value: Any) -> Any:
        if type(value) is datetime and value.tzinfo is UTC:
            return f"{value.replace(tzinfo=None).isoformat()}Z"
        return convert(value)

    return shown
