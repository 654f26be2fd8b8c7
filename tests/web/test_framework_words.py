"""No sentence of Django or Django REST framework reaches anybody: every serializer and form has the product's own."""

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
import rest_framework.validators
from django import forms
from django.conf import settings
from django.core import validators
from django.forms import fields as form_fields
from django.forms import models as form_models
from django.test import Client
from rest_framework import exceptions, fields, serializers

from tests import factories
from tests.calling import Caller
from web.framework_words import OF_CALLS
from web.strict import StrictSerializer

OURS = (
    "web",
    *(name for name in settings.INSTALLED_APPS if (settings.BASE_DIR / name).is_dir()),
)
NAMES = {"_", "gettext_lazy", "ngettext_lazy"}


def stock() -> Iterator[str]:
    """Every sentence that the frameworks' modules of fields and validators have themselves."""
    modules = (
        fields,
        serializers,
        rest_framework.validators,
        exceptions,
        validators,
        form_fields,
        form_models,
    )
    for module in modules:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in NAMES
            ):
                yield from (
                    each.value
                    for each in ast.walk(node)
                    if isinstance(each, ast.Constant)
                    and isinstance(each.value, str)
                    and " " in each.value
                )


STOCK = frozenset(stock())
PATTERNS = tuple(
    re.compile(re.sub(r"\\\{\w+\\\}|%\\\(\w+\\\)\w", ".*", re.escape(sentence)))
    for sentence in STOCK
)


def modules() -> Iterator[ModuleType]:
    for name in OURS:
        package = import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if ".migrations" not in found.name and ".management" not in found.name:
                yield import_module(found.name)


def below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def of_ours(kind: type[Any]) -> list[Any]:
    for _ in modules():
        pass
    found = {each for each in below(kind) if each.__module__.split(".")[0] in OURS}
    return sorted(found, key=lambda each: (each.__module__, each.__qualname__))


def inside(field: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A field with everything in it."""
    yield path, field
    if isinstance(field, serializers.Serializer):
        for name, each in field.fields.items():
            yield from inside(each, f"{path}.{name}")
    elif getattr(field, "child", None) is not None:
        yield from inside(field.child, f"{path}[]")


def sentences(field: Any) -> Iterator[str]:
    for each in field.error_messages.values():
        yield str(each)
    for each in field.validators:
        yield str(getattr(each, "message", ""))


def test_there_are_stock_sentences_to_look_for() -> None:
    assert {
        "A valid integer is required.",
        "This field is required.",
        "Enter a whole number.",
    } <= STOCK
    assert any(
        pattern.fullmatch("Ensure this value is less than or equal to 9.")
        for pattern in PATTERNS
    )


def test_no_serializer_that_reads_has_a_stock_sentence() -> None:
    walked = {
        f"{path}: {sentence}"
        for serializer in of_ours(StrictSerializer)
        for path, field in inside(serializer(), serializer.__name__)
        for sentence in sentences(field)
    }
    assert len(walked) > 500
    assert [each for each in sorted(walked) if each.partition(": ")[2] in STOCK] == []


def test_no_form_has_a_stock_sentence() -> None:
    walked = {
        f"{form.__name__}.{name}: {sentence}"
        for form in of_ours(forms.BaseForm)
        for name, field in form.base_fields.items()
        for sentence in sentences(field)
    }
    assert len(walked) > 100
    assert [each for each in sorted(walked) if each.partition(": ")[2] in STOCK] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "x" * 5_000,
        "\0",
        "\ud800",
        -1,
        10**30,
        1.5,
        True,
        [],
        [[]],
        {},
        {"x": 1},
        "2026-01-01",
    ],
)
def test_nothing_that_can_be_sent_is_answered_in_a_stock_sentence(value: Any) -> None:
    said = set()
    for serializer in of_ours(StrictSerializer):
        for data in (value, dict.fromkeys(serializer().fields, value), {}):
            read = serializer(data=data)
            try:
                read.is_valid()
            except exceptions.ValidationError as error:
                said |= {
                    f"{serializer.__name__}: {each}" for each in flat(error.detail)
                }
            else:
                said |= {f"{serializer.__name__}: {each}" for each in flat(read.errors)}
    found = [
        each
        for each in sorted(said)
        if any(p.fullmatch(each.partition(": ")[2]) for p in PATTERNS)
    ]
    assert said
    assert found == []


def flat(errors: Any) -> Iterator[str]:
    if isinstance(errors, str):
        yield str(errors)
    else:
        inner: Any = errors.values() if isinstance(errors, dict) else errors
        for each in inner:
            yield from flat(each)


def test_no_refused_call_has_a_stock_sentence() -> None:
    assert {
        type_
        for type_ in below(exceptions.APIException)
        if type_.__module__ == exceptions.__name__
    } <= set(OF_CALLS)
    for error in OF_CALLS:
        assert str(error.default_detail) not in STOCK


@pytest.mark.django_db
def test_whoever_calls_reads_what_was_wrong_and_what_to_do() -> None:
    assert (
        "The call has no token. Make one on the page Tokens"
        in Client().get("/api/v1/me/").json()["detail"]
    )
    caller = Caller(factories.person("Ada Okafor"))
    problem = caller.post("requests/preview/", {"gpus": "two"}).json()
    said = {each["pointer"]: each["detail"] for each in problem["errors"]}
    assert said["/gpus"] == "This is not a whole number. Write digits alone, such as 3."
    assert said["/team"] == "This field is missing. Send a value for it."
    assert (
        caller.get("requests/?limit=500").json()["errors"][0]["detail"]
        == "The largest possible value is 100."
    )
    refused = caller.post("me/", {}).json()
    assert (
        refused["detail"] == "POST does nothing at this address. Allow names what does."
    )
