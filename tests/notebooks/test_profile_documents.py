"""Profiles as documents: what they may say, what is refused at its place, and that writing one loses nothing."""

import re
from decimal import Decimal
from typing import Any

import pytest

from notebooks.profiles.document import document_from, read, read_again, usual, write
from notebooks.profiles.pricing import price_words, size_words
from tests.notebooks.documents import A100, CPU, a100, cpu
from web.documents import DocumentRefused

SIZE = {"title": "S", "choices": {"a": {"title": "A", "gpus": 99}}}
TYPED = {"title": "I", "free": {"title": "F", "pattern": "(a+)+$"}}


def refused(**changes: Any) -> dict[str, str]:
    """What is wrong with a profile, by place; it is right but for these."""
    with pytest.raises(DocumentRefused) as raised:
        document_from({"slug": "x1", "title": "X"} | changes)
    return dict(raised.value.problems)


@pytest.mark.parametrize("text", [A100, CPU])
def test_a_document_reads_as_it_was_written(text: str) -> None:
    document = read(text)
    assert read(write(document)) == document == read_again(write(document))
    assert write(read(write(document))) == write(document)


@pytest.mark.parametrize(
    "text", ["", "[]", "slug: [", "{slug: x1}", "slug: x1\ntitle: X\ncolour: red"]
)
def test_a_text_that_is_no_profile_any_more_is_refused_however_it_is_read(
    text: str,
) -> None:
    with pytest.raises(DocumentRefused) as raised:
        read(text)
    with pytest.raises(DocumentRefused, match="^" + re.escape(str(raised.value)) + "$"):
        read_again(text)


def test_cpus_are_written_as_people_write_them() -> None:
    assert "cpus: 8\n" in write(a100())
    assert "cpus: 16.5\n" in write(a100())
    assert "cpus: 0.5\n" in write(cpu())


def test_a_draft_needs_a_slug_and_a_title_alone() -> None:
    assert document_from({"slug": "x1", "title": "X"}).image == ""
    assert refused(slug="", title="")["title"].startswith("Write one line")


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("slug", {"slug": "New Profile"}),
        ("slug", {"slug": "import"}),
        ("slug", {"slug": "x" * 41}),
        ("title", {"title": "two\nlines"}),
        ("help", {"help": "x" * 1001}),
        ("colour", {"colour": "red"}),
        ("image", {"image": "not an image"}),
        ("cpus", {"cpus": 0}),
        ("cpus", {"cpus": 0.0001}),
        ("cpus", {"cpus": "many"}),
        ("memory", {"memory": 5000}),
        ("memory", {"memory": 1.5}),
        ("memory", {"memory": True}),
        ("gpus", {"gpus": 17}),
        ("gpus", {"gpus": -1}),
        ("variables.9", {"variables": {"9": "x"}}),
        ("volumes.0.name", {"volumes": [{"name": "../x", "path": "/data"}]}),
        ("volumes.0.path", {"volumes": [{"name": "x", "path": "data"}]}),
        (
            "volumes",
            {
                "volumes": [
                    {"name": "x", "path": "/data"},
                    {"name": "y", "path": "/data/"},
                ]
            },
        ),
        ("flavor", {"flavor": "A100!"}),
        ("resource", {"resource": "amd.com/gpu"}),
        ("teams", {"teams": ["vision", "vision"]}),
        ("teams.0", {"teams": ["Vision"]}),
        ("environments", {"environments": ["staging"]}),
        ("order", {"order": 10_000}),
        ("overrides.since", {"overrides": {"since": float("nan")}}),
        (
            "options.profile",
            {"options": {"profile": {"title": "X", "choices": {"a": {"title": "A"}}}}},
        ),
        (
            "options.a--b",
            {"options": {"a--b": {"title": "X", "choices": {"a": {"title": "A"}}}}},
        ),
        ("options.size.choices", {"options": {"size": {"title": "Size"}}}),
        (
            "options.size.choices.a.gpus",
            {"options": {"size": SIZE}},
        ),
        (
            "options.image.free.pattern",
            {"options": {"image": TYPED}},
        ),
        ("devcontainer.post_create", {"devcontainer": {"post_create": "a\nb"}}),
        ("devcontainer.features", {"devcontainer": {"features": {"no feature": {}}}}),
        ("devcontainer.extensions.0", {"devcontainer": {"extensions": ["python"]}}),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(
    place: str, changes: dict[str, Any]
) -> None:
    assert place in refused(**changes)


def test_a_date_among_overrides_is_no_json() -> None:
    with pytest.raises(DocumentRefused, match="in quotes"):
        read(f"{CPU}overrides: {{since: 2026-01-01}}\n")


def test_a_size_is_what_counts_where_nobody_chose() -> None:
    document = a100(gpus=4)
    assert usual(document, "gpus") == 1
    assert size_words(document, "A100") == "1 × A100 · 8 CPU · 64 GiB"
    assert size_words(cpu()) == "0.5 CPU · 4 GiB"


def test_a_price_is_that_of_the_gpus_from_the_smallest_to_the_largest_server() -> None:
    assert price_words(a100(options={}), [Decimal("3.67")]) == "$3.67 an hour"
    assert (
        price_words(a100(), [Decimal("3.67"), Decimal("4")]) == "$3.67 to $8.00 an hour"
    )
    assert price_words(a100(), []) == "no price yet"
    assert price_words(cpu(), []) == "costs nothing"
