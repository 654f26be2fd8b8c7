"""A serializer that only shows answers exactly what the framework's own does, whatever a row is made of."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from rest_framework import serializers

from web.output import OutputSerializer

AT = datetime(2026, 11, 20, 12, 30, 15, 250, tzinfo=UTC)


@dataclass
class Person:
    """Somebody."""

    oid: UUID = field(default_factory=lambda: UUID(int=7))
    name: str = "Ada"


@dataclass
class Row:
    """Something with every sort of value."""

    number: int = 3
    usd: Decimal = Decimal("12.5")
    at: datetime | None = AT
    person: Person | None = field(default_factory=Person)
    people: list[Person] = field(
        default_factory=lambda: [Person(), Person(name="Grace")]
    )
    spec: dict[str, Any] = field(default_factory=lambda: {"gpus": 2, "note": None})

    def words(self) -> str:
        """A method without arguments counts as a value."""
        return f"{self.number} of them"


def shapes(base: Any) -> Any:
    """The same serializer on either base."""

    class PersonShape(base):  # type: ignore[misc]
        oid = serializers.UUIDField()
        name = serializers.CharField()

    class Shape(base):  # type: ignore[misc]
        number = serializers.IntegerField()
        usd = serializers.DecimalField(max_digits=12, decimal_places=2)
        at = serializers.DateTimeField(allow_null=True)
        person = PersonShape(allow_null=True)
        people = PersonShape(many=True)
        spec = serializers.DictField()
        words = serializers.CharField()
        first_name = serializers.CharField(
            source="person.name", default=None, allow_null=True
        )
        left_out = serializers.CharField(required=False)
        secret = serializers.CharField(write_only=True, required=False)
        twice = serializers.SerializerMethodField()

        def get_twice(self, row: Any) -> Any:
            number = row["number"] if isinstance(row, dict) else row.number
            return self.context.get("factor", 2) * number

    return Shape


OURS, THEIRS = shapes(OutputSerializer), shapes(serializers.Serializer)
DICT = {
    "number": 1,
    "usd": Decimal(2),
    "at": None,
    "person": {"oid": UUID(int=1), "name": "Eve"},
    "people": [],
    "spec": {},
    "words": "one",
    "left_out": "here",
}


@pytest.mark.parametrize(
    "row",
    [
        Row(),
        Row(person=None, at=None),
        Row(at=AT.astimezone(ZoneInfo("Asia/Tokyo"))),
        Row(at=AT.astimezone(timezone(timedelta(hours=-3)))),
        Row(at=AT.replace(microsecond=0)),
        DICT,
        {**DICT, "person": None},
    ],
)
def test_it_shows_what_the_framework_would_in_the_same_order(row: Any) -> None:
    ours, theirs = (
        OURS(row, context={"factor": 5}).data,
        THEIRS(row, context={"factor": 5}).data,
    )
    assert list(ours.items()) == list(theirs.items())
    assert OURS([row, row], many=True).data == THEIRS([row, row], many=True).data


def test_a_row_without_what_a_field_needs_is_the_same_error() -> None:
    for shape in (OURS, THEIRS):
        with pytest.raises(KeyError, match="words"):
            _ = shape(
                {name: value for name, value in DICT.items() if name != "words"}
            ).data
