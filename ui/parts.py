"""What the recurring parts of pages are given. Pure.

They are dictionaries because templates look for keys first: an attribute costs them an exception.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, NotRequired, Required, TypedDict, cast

Phase = Literal["past", "now", "future"]


class Link(TypedDict):
    """Where to go, as a link or a button; `current` is where the reader is already, `key` a shortcut."""

    label: str
    href: str
    icon: NotRequired[str]
    key: NotRequired[str]
    count: NotRequired[int | str | None]
    current: NotRequired[bool]


class Post(TypedDict):
    """A button that posts to an address."""

    label: str
    post: str


class Hint(TypedDict):
    """A sentence with what it leads to, where it leads somewhere."""

    text: str
    label: NotRequired[str]
    href: NotRequired[str]


class Lack(TypedDict):
    """What the answer beside a form refuses: a sentence behind the label of its field, whose name is empty for none."""

    text: str
    field: str


class Badge(TypedDict):
    """A state: its word in the hue of its tone."""

    tone: str
    word: str


class Person(TypedDict):
    """Somebody as a chip."""

    name: str
    role: NotRequired[str]
    initials: NotRequired[str]
    away_until: NotRequired[datetime | str | None]
    stand_in: NotRequired[str]


class Figure(TypedDict):
    """A large number, with what it is a number of and what it compares to."""

    label: str
    value: str | int | Decimal
    unit: NotRequired[str]
    note: NotRequired[str]
    tone: NotRequired[str]


class Amounts(TypedDict):
    """How much there is of something, and what became of it; what is left is free."""

    total: float
    used: NotRequired[float]
    asked: NotRequired[float]
    reserved: NotRequired[float]
    blocked: NotRequired[float]


class Capacity(Amounts):
    """The amounts of a bar with its name."""

    label: str
    unit: str
    note: NotRequired[str]
    href: NotRequired[str]


class Column(TypedDict):
    """The head of a column; `kind` is number, end, or spare: a number that a narrow table of figures leaves out."""

    label: str
    kind: NotRequired[str]
    hidden: NotRequired[bool]


class Cell(TypedDict, total=False):
    """What stands in a table: a text, link, moment, how long ago it was, money, or badge, and a smaller line."""

    text: str
    sub: str
    href: str
    tone: str
    word: str
    at: datetime | None
    since: datetime | None
    money: Decimal | None
    period: str
    html: str


Content = Cell | Badge | str | float | Decimal | datetime | None
Columns = Sequence[str | Column]


class Row(TypedDict):
    """A line of a table."""

    cells: Sequence[Content]
    selected: NotRequired[bool]


class ChoosableRow(Row):
    """A line with a box that sends its `pk`."""

    pk: int | str
    name: str


class Fact(TypedDict, total=False):
    """A name and a value of one object: a text or link, a moment, something to copy, a person, money or a badge."""

    label: Required[str]
    text: str
    href: str
    at: datetime | None
    copyable: str
    person: Person
    money: Decimal | None
    period: str
    formula: str
    tone: str
    word: str
    html: str


class BeforeAfter(TypedDict):
    """What something was and what it becomes; nothing where it was not, or is no more."""

    label: str
    before: str | None
    after: str | None


class Rule(TypedDict):
    """A rule of an answer with its number; `mark` is ok, allowed, note or no."""

    mark: str
    text: str
    number: str
    deciding: NotRequired[bool]


class Verdict(TypedDict):
    """An answer in a sentence with the rules that make it."""

    tone: str
    sentence: str
    detail: NotRequired[str]
    rules: Sequence[Rule]
    hint: NotRequired[Hint | None]
    open: NotRequired[bool]


class Entry(TypedDict):
    """Something of a story that happened, happens or comes."""

    phase: Phase
    title: str
    at: datetime | str | None
    who: NotRequired[str]
    why: NotRequired[str]
    tone: NotRequired[str]
    evidence: NotRequired[Link]


def entry_of(
    phase: Phase, title: str, at: datetime | None, *, who: str = "", tone: str = "past"
) -> Entry:
    """An entry without reason and evidence."""
    return {"phase": phase, "title": title, "at": at, "who": who, "tone": tone}


def in_time(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in order of time; each has a moment."""
    return sorted(entries, key=lambda entry: cast(datetime, entry["at"]))


class StepLink(TypedDict):
    """One of several steps; `state` is done, now, next or rejected."""

    label: str
    state: str
    href: NotRequired[str]


class Wait(TypedDict):
    """Why something waits, since when, where in line, until when, and what to do about it; `detail` is for experts."""

    kind: str
    what: str
    since: datetime | None
    place: NotRequired[str]
    due: NotRequired[datetime | None]
    expected: NotRequired[str]
    advice: NotRequired[str]
    detail: NotRequired[str]
    action: NotRequired[Link | Post | None]


class Empty(TypedDict):
    """What stands where there is nothing yet: why, and what to do first."""

    title: str
    text: str
    action: NotRequired[Link]
    example: NotRequired[str]


class ChecklistItem(TypedDict):
    """An object that was made, with how it stands; what is no object of the cluster is listed and not counted."""

    kind: str
    name: str
    tone: str
    word: str
    plain: NotRequired[str]
    since: NotRequired[datetime | None]
    evidence: NotRequired[str]
    cause: NotRequired[str]
    explain: NotRequired[str]
    retry: NotRequired[str]
    is_object: NotRequired[bool]


class Checklist(TypedDict):
    """The objects of one place; `done` is the word for one that stands, `commit` what became of them in Git."""

    title: str
    items: list[ChecklistItem]
    looked_at: NotRequired[datetime | None]
    done: NotRequired[str]
    commit: NotRequired[str]


class Choice(TypedDict):
    """One of several cards to choose from."""

    value: str
    title: str
    text: NotRequired[str]
    figure: NotRequired[str]
    disabled: NotRequired[bool]


class RailEntry(TypedDict):
    """An entry of the rail; one with `bar` stands in the phone's bottom bar."""

    label: str
    url: str
    icon: str
    key: NotRequired[str]
    count: NotRequired[int]
    current: NotRequired[bool]
    bar: NotRequired[bool]


class Event(TypedDict):
    """One of the last things that happened, behind a badge."""

    at: datetime
    text: str


class DocumentChange(TypedDict):
    """A place where two documents differ; None is absent on that side."""

    path: str
    before: object
    after: object
