"""What the API takes: exact types, bounded texts, and nothing that was not asked for."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from web.fields import LONGEST_TEXT, MOST_GPUS
from web.refusals import BadDocument

T = TypeVar("T")
LARGEST_PAGE = 100
USUAL_PAGE = 25
RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
PLAIN_NUMBER = re.compile(r"[0-9]{1,18}")
MONEY = re.compile(r"[0-9]{1,10}(\.[0-9]{1,4})?")


class StrictSerializer(serializers.Serializer[Any]):
    """An object of which every field is known; an unknown one is refused by name, never ignored."""

    def to_internal_value(self, data: Any) -> Any:
        """The values; raises ValidationError naming what is unknown beside whatever else is wrong."""
        unknown = self._unknown(data) if isinstance(data, Mapping) else {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if unknown and isinstance(error.detail, dict):
                raise serializers.ValidationError(
                    {**unknown, **error.detail}
                ) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return values

    def _unknown(self, data: Mapping[Any, Any]) -> dict[str, list[ErrorDetail]]:
        names = [
            str(name)[:100].encode("utf-8", "replace").decode()
            for name in data
            if name not in self.fields
        ]
        if not names:
            return {}
        known = ", ".join(sorted(self.fields)) or "none"
        text = ErrorDetail(
            f"There is no such field; known are: {known}.", "unknown_field"
        )
        return {name: [text] for name in names[:20]}


class NothingSerializer(StrictSerializer):
    """An empty object."""


class Integer(serializers.IntegerField):
    """A whole JSON number: no text, no fraction, no boolean."""

    def to_internal_value(self, data: Any) -> int:
        """The number as it came."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(data)


class Gpus(Integer):
    """A number of GPUs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=MOST_GPUS, **options)


class Text(serializers.CharField):
    """A JSON string of at most 2000 characters without NUL; spaces around it are dropped."""

    default_error_messages = {"invalid": "Give a text."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"max_length": LONGEST_TEXT} | options))

    def to_internal_value(self, data: Any) -> str:
        """The text; numbers are not taken for texts."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Choice(serializers.ChoiceField):
    """One of the given words."""

    default_error_messages = {"invalid_choice": "This is not one of the choices."}

    def __init__(self, choices: Any, **options: Any) -> None:
        super().__init__(choices=choices, **options)
        words = ", ".join(str(choice) for choice in self.choices)
        self.error_messages["invalid_choice"] = f"Choose one of: {words}."

    def to_internal_value(self, data: Any) -> Any:
        """The word."""
        if not isinstance(data, str):
            self.fail("invalid_choice", input="")
        return super().to_internal_value(data)


class Boolean(serializers.BooleanField):
    """JSON's true or false; not "true", not 1."""

    def to_internal_value(self, data: Any) -> bool:
        """The value as it came."""
        if not isinstance(data, bool):
            self.fail("invalid", input="")
        return data


class Moment(serializers.DateTimeField):
    """A time by RFC 3339 with its zone, between the years 2000 and 2100."""

    default_error_messages = {
        "invalid": "Give a time with its zone, such as 2026-12-31T18:00:00Z.",
        "year": "The year must lie between 2000 and 2100.",
    }

    def to_internal_value(self, value: Any) -> datetime:
        """The time; raises ValidationError for a naive one."""
        if not isinstance(value, str) or not RFC_3339.fullmatch(value):
            self.fail("invalid")
        if not 2000 <= int(value[:4]) <= 2100:
            self.fail("year")
        # Python reads six places of a second at most.
        return super().to_internal_value(
            re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", value.upper())
        )


class Money(serializers.DecimalField):
    """USD as a text such as "1500.00", so that no cent is lost on the way."""

    default_error_messages = {"text": "Give an amount as text, such as “1500.00”."}

    def __init__(self, *, decimal_places: int = 2, **options: Any) -> None:
        super().__init__(
            max_digits=10 + decimal_places, decimal_places=decimal_places, **options
        )

    def to_internal_value(self, data: Any) -> Decimal:
        """The amount."""
        if not isinstance(data, str) or not MONEY.fullmatch(data):
            self.fail("text")
        return super().to_internal_value(data)


class QueryNumber(serializers.IntegerField):
    """A number in an address: plain digits only."""

    def to_internal_value(self, data: Any) -> int:
        """The number."""
        if not PLAIN_NUMBER.fullmatch(str(data)):
            is_long = str(data).isascii() and str(data).isdigit()
            self.fail("max_string_length" if is_long else "invalid")
        return int(data)


class NoQuery(StrictSerializer):
    """An address that takes no parameters."""


class PageQuery(StrictSerializer):
    """What every list takes: how many rows, and from where on."""

    limit = QueryNumber(
        required=False,
        min_value=1,
        max_value=LARGEST_PAGE,
        help_text=f"Rows a page, 1 to {LARGEST_PAGE}; {USUAL_PAGE} unless told otherwise.",
    )
    cursor = Text(
        required=False, max_length=500, help_text="From `next` or `previous`; opaque."
    )


def at_their_places(
    problems: Iterable[tuple[str, str]], *, code: str, field: str
) -> serializers.ValidationError:
    """A refused document with a pointer to each place that is wrong; in a text, the place stands in the words."""
    detail: list[Any] = []
    for place, what in problems:
        said: Any = [ErrorDetail(what, code)]
        for part in reversed(place.split(".") if place and field == "document" else []):
            said = {part: said}
        detail += [said] if isinstance(said, dict) else said
        if place and field != "document":
            detail[-1] = ErrorDetail(f"{place}: {what}", code)
    return serializers.ValidationError({field: detail})


def with_places(field: str, act: Callable[[], T]) -> T:
    """Do what takes a document; raises ValidationError with a pointer to every place of it that is wrong."""
    try:
        return act()
    except BadDocument as refused:
        raise at_their_places(
            refused.problems, code=refused.code, field=field
        ) from refused
