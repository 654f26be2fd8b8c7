"""Switching one guard of the product off, in the running code, so that a test can show that another test notices."""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest
from django.db import transaction

from tests.scene import scene


@dataclass(frozen=True)
class Guard:
    """A line that keeps something from happening, what stands there when it is off, and the test that must notice."""

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
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    assert source.count(guard.line) == 1, f"{guard.where} has {source.count(guard.line)} times: {guard.line}"
    names: dict[str, Any] = {}
    exec(compile(f"from __future__ import annotations\n{source.replace(guard.line, guard.off)}", "off", "exec"),  # noqa: S102
         dict(function.__globals__), names)  # fmt: skip
    patch.setattr(function, "__code__", names[function.__name__].__code__)


def play(noticed_by: str, given: Mapping[str, Any]) -> BaseException | None:
    """Run a test in a world of its own that is gone afterwards; what it failed with, None when it passes."""
    test: Callable[..., None] = found(noticed_by)
    needs = inspect.signature(test).parameters
    try:
        with transaction.atomic():
            fixtures = {"scene": scene()} if "scene" in needs else {}
            test(**fixtures, **given)
            transaction.set_rollback(True)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # noqa: BLE001 - pytest's own failures are no Exceptions
        return failure
    return None
