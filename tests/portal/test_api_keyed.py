"""Every action of the API that says it needs an Idempotency-Key looks at it, and every one that does says so."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver

from accounts.endpoints import Endpoint
from accounts.replay import answer_once

Action = tuple[type[Endpoint], str]


def actions_of_the_api() -> list[Action]:
    """Every action that an address leads to."""
    found = set(_actions(get_resolver().url_patterns))
    return sorted(found, key=lambda one: (one[0].__module__, one[0].__name__, one[1]))


def _actions(patterns: Any) -> Iterator[Action]:
    for pattern in patterns:
        if not isinstance(pattern, URLPattern):
            yield from _actions(pattern.url_patterns)
            continue
        view: Any = pattern.callback
        endpoint = getattr(view, "cls", None)
        if inspect.isclass(endpoint) and issubclass(endpoint, Endpoint):
            yield from ((endpoint, action) for action in view.actions.values())


def answers_once(endpoint: type[Endpoint], action: str) -> bool:
    """Whether an action calls `answer_once`, by itself or in a method of its own that it calls."""
    ahead, seen = [action], set[str]()
    while ahead:
        name = ahead.pop()
        method = getattr(endpoint, name, None)
        if name in seen or not inspect.isfunction(method):
            continue
        seen.add(name)
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call):
                continue
            called = ast.unparse(call.func)
            if called.split(".")[-1] == answer_once.__name__:
                return True
            if called.startswith("self."):
                ahead.append(called.removeprefix("self."))
    return False


@pytest.mark.parametrize(
    ("endpoint", "action"),
    [
        pytest.param(*one, id=f"{one[0].__name__}.{one[1]}")
        for one in actions_of_the_api()
    ],
)
def test_what_is_described_with_a_key_is_answered_once_and_nothing_else_is(
    endpoint: type[Endpoint], action: str
) -> None:
    assert answers_once(endpoint, action) == (action in endpoint.keyed)


def test_every_action_that_is_named_as_keyed_has_an_address() -> None:
    reached = actions_of_the_api()
    named = {(one, action) for one, _ in reached for action in one.keyed}
    assert len(named) > 50
    assert named <= set(reached)
