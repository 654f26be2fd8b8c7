"""The table of kinds agrees with what a real API server lists."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.kinds import KINDS, Kind, by_kind, by_resource

RECORDINGS = Path(__file__).parents[2] / "recordings"


def recorded_resources() -> dict[str, dict[str, dict[str, Any]]]:
    lists: dict[str, dict[str, dict[str, Any]]] = {}
    for step in json.loads((RECORDINGS / "01-discovery.json").read_text()):
        body = step["response"]["body"]
        if isinstance(body, dict) and body.get("kind") == "APIResourceList":
            lists[body["groupVersion"]] = {
                entry["name"]: entry for entry in body["resources"]
            }
    return lists


RECORDED = recorded_resources()


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k.api_version in RECORDED], ids=lambda k: str(k.kind)
)
def test_a_kind_is_listed_as_a_real_server_lists_it(kind: Kind) -> None:
    entries = RECORDED[kind.api_version]
    entry = entries[kind.plural]
    assert (entry["kind"], entry["singularName"]) == (kind.kind, kind.singular)
    assert entry["namespaced"] is kind.namespaced
    assert tuple(entry["verbs"]) == kind.verbs
    assert tuple(entry.get("shortNames", ())) == kind.short_names
    assert tuple(entry.get("categories", ())) == kind.categories
    recorded = tuple(
        name.partition("/")[2] for name in entries if name.startswith(f"{kind.plural}/")
    )
    assert recorded == kind.subresources


def test_it_finds_a_kind_by_url_and_by_body() -> None:
    job = by_resource("batch", "v1", "jobs")
    assert job is not None
    assert job is by_kind("batch/v1", "Job")
    assert (job.qualified_plural, job.qualified_kind) == ("jobs.batch", "Job.batch")
    assert by_resource("", "v1", "jobs") is None
    assert by_kind("kueue.x-k8s.io/v1beta1", "ClusterQueue") is None


def test_core_kinds_have_no_group_in_their_names() -> None:
    pod = by_kind("v1", "Pod")
    assert pod is not None
    assert (pod.api_version, pod.qualified_plural, pod.qualified_kind) == (
        "v1",
        "pods",
        "Pod",
    )
