"""Patterns of free choices: which are taken, and that those answer at once whatever somebody types."""

import re
import time

import pytest

from notebooks.profiles.patterns import guarded, refused_open_end, refused_pattern

TAKEN = [
    r"^registry\.example\.com/.+:.+$",
    r"^[a-z0-9-]+/[a-z0-9-]+:[0-9.]+$",
    r"^(?:pytorch|jax)(?:-cuda1[23])?:[0-9]{1,3}$",
    r"^v[0-9]+\.[0-9]+$",
    r"^(dev|main)$",
    r"^[]a]+$",
]
REFUSED = [
    "(a+)+$",
    "(a|a)*$",
    "(?:(?:a|b){1,3})+$",
    "(a*){2,}$",
    r"^(\w+\s?)*$",
    r"(a)\1$",
    "(?=a)a$",
    "(?P<name>a)$",
    "(?i)a$",
    ".*.*.*.*$",
    "[",
    "a" * 301,
]


@pytest.mark.parametrize("pattern", TAKEN)
def test_a_plain_pattern_is_taken(pattern: str) -> None:
    assert refused_pattern(pattern) == ""
    assert refused_open_end(pattern) == ""


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str) -> None:
    assert refused_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["^a", "^a|b$", r"^a\$", "^a$|.+", "", r"^(a|b)|c\Z"]
)
def test_a_pattern_that_looks_at_the_beginning_alone_is_open(pattern: str) -> None:
    assert refused_open_end(pattern)


@pytest.mark.parametrize("pattern", [*TAKEN, "^a*a*a*$", "^.*.*.*!$"])
@pytest.mark.parametrize(
    "text",
    ["a" * 100_000, "registry.example.com/" + ":" * 100_000, "a" * 400, "1." * 200],
)
def test_what_is_taken_answers_at_once_for_any_text(pattern: str, text: str) -> None:
    began = time.process_time()
    re.match(guarded(pattern), text)
    # Of 400 characters in three repetitions there are ten million ways; without the bound it would be days.
    assert time.process_time() - began < 10


def test_a_value_begins_as_images_have_to_and_is_one_line() -> None:
    pattern = guarded(
        r"^.+$", beginnings=("registry.example.com/", "other.example.com/")
    )
    assert re.match(pattern, "registry.example.com/a:1")
    assert re.match(pattern, "other.example.com/a:1")
    assert not re.match(pattern, "docker.io/a:1")
    assert not re.match(pattern, "registryxexample.com/a:1")
    assert not re.match(pattern, "registry.example.com/a:1\n")
    assert not re.match(pattern, "registry.example.com/" + "a" * 400)
