"""Patches that are no apply."""

import json
from typing import Any

import pytest

from sandbox.kubernetes.kinds import by_kind
from sandbox.kubernetes.patches import JSON_PATCH, MERGE, STRATEGIC, patched
from sandbox.kubernetes.schema import schema_for
from sandbox.kubernetes.status import Refusal

POD = by_kind("v1", "Pod")
OBJECT = {
    "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
    "data": {"x": "1"},
}


def patch(body: Any, content_type: str) -> dict[str, Any]:
    assert POD is not None
    return patched(schema_for(POD), OBJECT, json.dumps(body).encode(), content_type)


def test_null_removes_a_field() -> None:
    assert patch({"data": {"x": None, "y": "2"}}, MERGE)["data"] == {"y": "2"}


def test_a_merge_patch_replaces_lists() -> None:
    assert patch({"spec": {"containers": []}}, MERGE)["spec"]["containers"] == []


def test_a_strategic_patch_finds_items_by_their_key() -> None:
    body = {
        "spec": {
            "containers": [
                {"name": "b", "image": "2"},
                {"name": "a", "$patch": "delete"},
            ]
        }
    }
    assert patch(body, STRATEGIC)["spec"]["containers"] == [{"name": "b", "image": "2"}]


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        ({"op": "add", "path": "/data/y", "value": "2"}, {"x": "1", "y": "2"}),
        ({"op": "replace", "path": "/data/x", "value": "2"}, {"x": "2"}),
        ({"op": "remove", "path": "/data/x"}, {}),
        ({"op": "copy", "from": "/data/x", "path": "/data/y"}, {"x": "1", "y": "1"}),
        ({"op": "move", "from": "/data/x", "path": "/data/a~1b"}, {"a/b": "1"}),
        ({"op": "test", "path": "/data/x", "value": "1"}, {"x": "1"}),
    ],
)
def test_json_patches_do_what_they_say(
    operation: dict[str, Any], data: dict[str, str]
) -> None:
    assert patch([operation], JSON_PATCH)["data"] == data
    assert OBJECT["data"] == {"x": "1"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/gone/x"},
        {"op": "test", "path": "/data/x", "value": "9"},
        {"op": "dance"},
    ],
)
def test_a_json_patch_that_cannot_be_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        patch([operation], JSON_PATCH)


def test_a_patch_that_is_no_json_is_refused() -> None:
    assert POD is not None
    with pytest.raises(Refusal, match="error decoding patch"):
        patched(schema_for(POD), OBJECT, b"{", MERGE)
