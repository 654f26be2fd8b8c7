"""LimitRanges refuse pods in the words of a real server."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.defaults import apply_defaults
from sandbox.kubernetes.kinds import Kind, by_kind
from sandbox.kubernetes.limitrange import fill_in, refusal
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.validation import check_create

RECORDINGS = Path(__file__).parents[2] / "recordings"


def kind_of(name: str) -> Kind:
    kind = by_kind("v1", name)
    assert kind is not None
    return kind


def steps() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(
        (RECORDINGS / "06-limitrange.json").read_text()
    )
    return loaded


def namespace_of(step: dict[str, Any]) -> str:
    return str(step["request"]["path"]).split("/")[4]


def ranges_of(step: dict[str, Any]) -> list[dict[str, Any]]:
    made = [one for one in steps() if one["name"].startswith("limitrange-")]
    return [
        one["response"]["body"]
        for one in made
        if namespace_of(one) == namespace_of(step)
    ]


def judge(pod: dict[str, Any], ranges: list[dict[str, Any]]) -> Refusal | None:
    filled = apply_defaults(kind_of("Pod"), pod)
    fill_in(filled, ranges)
    return check_create(kind_of("Pod"), filled) or refusal(
        kind_of("Pod"), filled, ranges
    )


@pytest.mark.parametrize(
    "step",
    [s for s in steps() if s["request"]["method"] == "POST"],
    ids=lambda s: str(s["name"]),
)
def test_it_judges_a_pod_as_the_server_did(step: dict[str, Any]) -> None:
    found = judge(step["request"]["body"], ranges_of(step))
    answer = step["response"]
    if answer["status"] == 201:
        assert found is None
    else:
        assert found is not None
        assert (found.code, found.body) == (answer["status"], answer["body"])


def messages(item: dict[str, Any], resources: dict[str, Any], kind: str = "Pod") -> str:
    limit_range = {"spec": {"limits": [item]}}
    spec = (
        {"containers": [{"name": "a", "resources": resources}]}
        if kind == "Pod"
        else {"resources": resources}
    )
    found = refusal(
        kind_of(kind), {"metadata": {"name": "x"}, "spec": spec}, [limit_range]
    )
    return found.message if found else ""


def test_it_words_the_limits_without_recordings() -> None:
    least = {"type": "Container", "min": {"cpu": "1"}}
    assert messages(least, {}).endswith(
        "minimum cpu usage per Container is 1.  No request is specified"
    )
    ratio = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}
    head = "cpu max limit to request ratio per Container is 2, but "
    assert messages(ratio, {}).endswith(
        f"{head}no request is specified or request is 0"
    )
    assert messages(ratio, {"requests": {"cpu": "1"}}).endswith(
        f"{head}no limit is specified or limit is 0"
    )
    wide = {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}
    assert messages(ratio, wide).endswith(f"{head}provided ratio is 3.000000")
    assert messages(ratio, {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}) == ""


def test_it_limits_claims() -> None:
    item = {
        "type": "PersistentVolumeClaim",
        "min": {"storage": "1Gi"},
        "max": {"storage": "1Ti"},
    }
    assert messages(
        item, {"requests": {"storage": "2Ti"}}, "PersistentVolumeClaim"
    ) == (
        'persistentvolumeclaims "x" is forbidden: '
        "maximum storage usage per PersistentVolumeClaim is 1Ti, but request is 2Ti"
    )
    assert messages(
        item, {"requests": {"storage": "1Mi"}}, "PersistentVolumeClaim"
    ).endswith("but request is 1Mi")
    assert (
        messages(item, {"requests": {"storage": "1Gi"}}, "PersistentVolumeClaim") == ""
    )


def test_init_containers_are_filled_in_too() -> None:
    pod: dict[str, Any] = {
        "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "b"}]}
    }
    item = {"type": "Container", "default": {"cpu": "1"}}
    fill_in(pod, [{"spec": {"limits": [item]}}])
    text = "LimitRanger plugin set: cpu limit for container a; cpu limit for init container b"
    assert pod["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": text}
