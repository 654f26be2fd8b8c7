"""Switching one guard of the product off, in the running code, so that a test can show that another test notices."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests.scene import scene
from tests.world import world


@dataclass(frozen=True)
class Guard:
    """Code that keeps something from happening, what stands there when it is off, and the test that must notice.

    `line` is part of a statement as `ast.unparse` has it, in either quotes and however the formatter breaks it.
    """

    where: str
    line: str
    off: str
    noticed_by: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.where}: {self.line}"


def found(path: str) -> Any:
    """The thing at "package.module:Name.attribute"."""
    module, _, names = path.partition(":")
    thing: Any = import_module(module)
    for name in names.split("."):
        thing = inspect.getattr_static(thing, name)
    return thing.fget if isinstance(thing, property) else thing


def switch_off(guard: Guard, patch: pytest.MonkeyPatch) -> None:
    """Run the function without its guard from now on, for everybody who has imported it."""
    function = inspect.unwrap(found(guard.where))
    assert isinstance(function, FunctionType), guard.where
    source = unparsed(function)
    line = guard.line.replace('"', "'")
    assert source.count(line) == 1, (
        f"{guard.where} has {source.count(line)} times: {guard.line}"
    )
    # What it closes over, such as the class that `super()` needs, keeps its place.
    around = ", ".join(function.__code__.co_freevars)
    inner = textwrap.indent(source.replace(line, guard.off), "    ")
    text = f"from __future__ import annotations\ndef around({around}):\n{inner}\n    return {function.__name__}"
    names: dict[str, Any] = {}
    exec(compile(text, "off", "exec"), dict(function.__globals__), names)
    off = names["around"](*function.__code__.co_freevars)
    patch.setattr(function, "__code__", off.__code__)


def unparsed(function: FunctionType) -> str:
    """A function's source without decorators, each statement on a line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    return ast.unparse(tree)


def fixtures(
    test: Callable[..., Any],
    module: Any,
    made: Mapping[str, Callable[[], Any]],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """What a test, or a fixture of its module, takes: made anew, each once."""
    found_so_far: dict[str, Any] = {}

    def one(name: str) -> Any:
        if name not in found_so_far:
            found_so_far[name] = (
                made[name]()
                if name in made
                else all_of(inspect.unwrap(getattr(module, name)))
            )
        return found_so_far[name]

    def all_of(fixture: Callable[..., Any]) -> Any:
        return fixture(
            **{name: one(name) for name in inspect.signature(fixture).parameters}
        )

    return {
        name: one(name)
        for name in inspect.signature(test).parameters
        if name not in given
    }


def play(noticed_by: str, given: Mapping[str, Any]) -> BaseException | None:
    """Run a test in a world of its own that is gone afterwards; what it failed with, None when it passes."""
    test: Callable[..., None] = found(noticed_by)
    module = import_module(noticed_by.partition(":")[0])
    try:
        with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
            made = {
                "scene": scene,
                "here": world,
                "client": Client,
                "db": lambda: None,
                "monkeypatch": lambda: patch,
            }
            test(**fixtures(test, module, made, given), **given)
            transaction.set_rollback(True)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:
        return failure
    return None
