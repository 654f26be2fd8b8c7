"""What parameters of a template refuse, each with a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.templates.library import TEMPLATES
from workloads.templates.parameters import (
    Parameter,
    Type,
    check,
    refused_script,
    refused_source,
)


def one(type: Type, **more: object) -> Parameter:
    return Parameter(name="x", type=type, title="It", help="", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (one(Type.TEXT), "two\nlines"),
        (one(Type.TEXT), "x" * 401),
        (one(Type.WORDS), "no list"),
        (one(Type.WORDS), ["\0"]),
        (one(Type.WORDS), [5]),
        (one(Type.COUNT, minimum=1, maximum=8), 9),
        (one(Type.COUNT), True),
        (one(Type.COUNT), "4"),
        (one(Type.CHOICE, choices=("a",)), "b"),
        (one(Type.FLAG), 1),
        (one(Type.IMAGE), "Registry/UPPER"),
        (one(Type.IMAGE), "x:1\nevil: true"),
        (one(Type.PATH), "relative"),
        (one(Type.PATH), "/data/../etc"),
        (one(Type.CLAIM), "Data"),
        (one(Type.TEXT), ""),
    ],
)
def test_what_is_refused(parameter: Parameter, value: object) -> None:
    found = check([parameter], {"x": value})
    assert found.values == {}
    assert found.problems["x"].startswith("It is ")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (one(Type.TEXT), "one line: [with YAML]"),
        (one(Type.WORDS), ("python", "train.py")),
        (one(Type.COUNT, minimum=1, maximum=8), 8),
        (one(Type.FLAG), False),
        (one(Type.IMAGE), "registry.example.com:5000/team/train:v1.2-rc_1"),
        (one(Type.IMAGE), "busybox@sha256:" + "0" * 64),
        (one(Type.PATH), "/data/sets"),
        (one(Type.CLAIM), "data-1"),
    ],
)
def test_what_is_taken(parameter: Parameter, value: object) -> None:
    assert check([parameter], {"x": value}).values == {"x": value}


def test_what_no_parameter_is_named_for_is_refused() -> None:
    assert check([], {"y": 1}).problems == {"y": "There is no such parameter."}


def test_defaults_are_filled_in_and_fit_their_own_limits() -> None:
    for template in TEMPLATES:
        given = {"image": "x:1", "program": ("true",)}
        names = {each.name for each in template.parameters}
        found = check(
            template.parameters,
            {name: value for name, value in given.items() if name in names},
        )
        assert (template.slug, found.problems) == (template.slug, {})
        assert all(
            each.title and each.help.endswith(".") for each in template.parameters
        )


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text(max_size=9),
        st.none() | st.integers() | st.text() | st.lists(st.text()),
        max_size=4,
    )
)
def test_whatever_is_given_is_taken_or_refused_with_a_sentence(
    given: dict[str, object],
) -> None:
    found = check(TEMPLATES[0].parameters, given)
    names = {each.name for each in TEMPLATES[0].parameters if each.is_needed}
    assert found.values.keys() | found.problems.keys() >= names
    assert not found.values.keys() & found.problems.keys()
    assert all(problem.endswith(".") for problem in found.problems.values())


@pytest.mark.parametrize(
    ("url", "revision"),
    [
        ("http://git.example.com/x", "main"),
        ("https://user:secret@git.example.com/x", "main"),
        ("https://127.0.0.1/x", "main"),
        ("https://169.254.169.254/x", "main"),
        ("https://[::1]/x", "main"),
        ("https://localhost/x", "main"),
        ("https://metadata.google.internal/x", "main"),
        ("https://git.example.com/x", "--upload-pack=x"),
        ("https://git.example.com/x", "a..b"),
        ("file:///etc/passwd", "main"),
        ("https://[", "main"),
    ],
)
def test_sources_that_are_refused(url: str, revision: str) -> None:
    assert refused_source(url, revision)


def test_a_source_that_is_taken() -> None:
    assert refused_source("https://git.example.com/nlp/train.git", "feature/x") == ""


def test_a_script_has_a_limit_of_size_and_is_text() -> None:
    assert refused_script("print(1)") == ""
    assert "at most 256 KiB" in refused_script("x" * 10_000_000)
    assert refused_script(" \n")
    assert refused_script("a\0b")
