"""Schemas fit what a real server stored, and complain in its words."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.kinds import JOBSET_GROUP, KINDS, KUEUE_GROUP, Kind, by_kind
from sandbox.kubernetes.schema import (
    DEFINITIONS,
    apply_error,
    errors,
    is_atomic,
    list_keys,
    prune,
    schema_for,
    strict_error,
    strict_unknown_fields,
    warnings,
)
from sandbox.kubernetes.schema_language import Schema

RECORDINGS = Path(__file__).parents[2] / "recordings"
SHARED = Path(os.environ.get("QM_SHARED", Path(__file__).parents[4] / "shared"))


def kind_of(api_version: str, name: str) -> Kind:
    kind = by_kind(api_version, name)
    assert kind is not None
    return kind


def steps(file: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((RECORDINGS / file).read_text())
    return loaded


def answer(file: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    step = next(step for step in steps(file) if step["name"] == name)
    return step["request"]["body"], step["response"]["body"]


def recorded_objects() -> Iterator[tuple[Kind, dict[str, Any]]]:
    for path in sorted(RECORDINGS.glob("*.json")):
        for step in json.loads(path.read_text()):
            body = step["response"]["body"]
            if isinstance(body, dict) and step["response"]["status"] in {200, 201}:
                yield from objects_in(body)


def objects_in(body: dict[str, Any]) -> Iterator[tuple[Kind, dict[str, Any]]]:
    api_version, name = body.get("apiVersion", ""), str(body.get("kind", ""))
    for item in body.get("items", [body]):
        kind = by_kind(
            api_version, name.removesuffix("List") if "items" in body else name
        )
        if kind is not None and isinstance(item, dict):
            yield kind, item


def test_every_kind_has_a_schema_and_every_definition_parses() -> None:
    assert all(schema_for(kind).type == "object" for kind in KINDS)
    assert all(DEFINITIONS.get(name).fields for name in DEFINITIONS)


def test_every_recorded_object_fits_its_schema() -> None:
    checked = 0
    for kind, item in recorded_objects():
        assert [str(error) for error in errors(kind, item)] == []
        checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    "name",
    [
        "unknown-field-strict",
        "unknown-field-nested",
        "unknown-field-crd",
        "wrong-type",
        "wrong-type-list",
    ],
)
def test_it_words_the_refusal_of_an_apply_as_recorded(name: str) -> None:
    body, status = answer("02c-ssa-refusals.json", name)
    meta = body["metadata"]
    kind = kind_of(body["apiVersion"], body["kind"])
    assert (
        apply_error(kind, meta.get("namespace", ""), meta["name"], body)
        == status["message"]
    )


def test_it_words_strict_and_lax_post_as_recorded() -> None:
    body, status = answer("02c-ssa-refusals.json", "post-unknown-field-strict")
    kind = kind_of("v1", "ConfigMap")
    assert strict_error(kind, body) == status["message"]
    lax = next(
        step
        for step in steps("02c-ssa-refusals.json")
        if step["name"] == "post-unknown-field-lax"
    )
    assert warnings(kind, lax["request"]["body"]) == [
        lax["response"]["headers"]["warning"]
    ]
    assert prune(kind, lax["request"]["body"]).keys() == {
        "apiVersion",
        "kind",
        "metadata",
        "data",
    }


def test_it_names_unknown_fields_inside_lists_both_ways() -> None:
    pod = {
        "spec": {
            "containers": [{"name": "main", "imag": "x"}],
            "tolerations": [{"kee": "a"}],
        }
    }
    kind = kind_of("v1", "Pod")
    assert [each.path for each in errors(kind, pod)] == [
        '.spec.containers[name="main"].imag',
        ".spec.tolerations[0].kee",
    ]
    assert strict_unknown_fields(kind, pod) == [
        "spec.containers[0].imag",
        "spec.tolerations[0].kee",
    ]
    assert prune(kind, pod) == {
        "spec": {"containers": [{"name": "main"}], "tolerations": [{}]}
    }


def test_it_reports_several_errors_at_once() -> None:
    job = {
        "spec": {
            "parallelism": "two",
            "suspend": "no",
            "template": {"spec": {"containers": {"a": [1]}}},
        }
    }
    text = apply_error(kind_of("batch/v1", "Job"), "n", "j", job)
    assert text == (
        "failed to create typed patch object (n/j; batch/v1, Kind=Job): errors:\n"
        "  .spec.parallelism: expected numeric (int or float), got string\n"
        "  .spec.suspend: expected boolean, got &{no}\n"
        "  .spec.template.spec.containers: expected list, got &{map[a:[1]]}"
    )


def test_it_refuses_duplicate_keys_and_accepts_nulls_and_scalar_quantities() -> None:
    pod = kind_of("v1", "Pod")
    twice = {
        "spec": {"containers": [{"name": "a"}, {"name": "a"}], "nodeSelector": None}
    }
    assert (
        str(errors(pod, twice)[0])
        == '.spec.containers: duplicate entries for key [name="a"]'
    )
    quota = kind_of("v1", "ResourceQuota")
    assert (
        errors(quota, {"spec": {"hard": {"pods": True, "cpu": 1.5, "memory": None}}})
        == []
    )
    assert (
        errors(quota, {"spec": {"hard": {"pods": {}}}})[0].message
        == "expected any scalar, got &{map[]}"
    )
    assert errors(quota, {"spec": []})[0].message == "expected map, got &{[]}"


def test_a_string_field_shows_what_it_got_in_go_syntax() -> None:
    config = kind_of("v1", "ConfigMap")
    found = errors(config, {"data": {"a": {"b": ["x", None, True]}}})
    assert found[0].message == (
        "expected string, got &value.valueUnstructured{Value:"
        'map[string]interface {}{"b":[]interface {}{"x", <nil>, true}}}'
    )


def test_lists_tell_how_they_merge() -> None:
    pod = schema_for(kind_of("v1", "Pod")).fields["spec"]
    containers, tolerations = pod.fields["containers"], pod.fields["tolerations"]
    assert (containers.list_type, list_keys(containers), is_atomic(containers)) == (
        "map",
        ("name",),
        False,
    )
    assert (tolerations.list_type, is_atomic(tolerations)) == ("atomic", True)
    finalizers = (
        schema_for(kind_of("v1", "Pod")).fields["metadata"].fields["finalizers"]
    )
    assert (finalizers.list_type, is_atomic(finalizers)) == ("set", False)
    assert is_atomic(pod.fields["nodeSelector"])
    assert not is_atomic(pod)


def same(ours: Schema, theirs: dict[str, Any], path: str) -> Iterator[str]:
    """Differences between our schema and one of a custom resource definition, as lines."""
    if ours.type == "any":
        return
    if theirs.get("x-kubernetes-int-or-string"):
        if ours.type not in {"quantity", "int-or-string"}:
            yield f"{path}: {ours.type} is int-or-string"
        return
    if theirs["type"] == "array":
        yield from same_list(ours, theirs, path)
    elif "additionalProperties" in theirs:
        assert ours.items is not None
        yield from same(ours.items, theirs["additionalProperties"], path + "{}")
    elif theirs.get("properties"):
        yield from same_fields(ours, theirs, path)
    elif ours.type not in scalar_names(theirs):
        yield f"{path}: {ours.type} is {theirs['type']}"


def scalar_names(theirs: dict[str, Any]) -> set[str]:
    if theirs["type"] == "string":
        return {"time"} if theirs.get("format") == "date-time" else {"string"}
    return {"integer": {"int"}, "boolean": {"bool"}, "object": {"any", "object"}}.get(
        theirs["type"], set()
    )


def same_list(ours: Schema, theirs: dict[str, Any], path: str) -> Iterator[str]:
    keys = tuple(theirs.get("x-kubernetes-list-map-keys", ()))
    if (ours.list_type, ours.keys) != (
        theirs.get("x-kubernetes-list-type", "atomic"),
        keys,
    ):
        yield f"{path}: list {ours.list_type} {ours.keys}"
    assert ours.items is not None
    yield from same(ours.items, theirs["items"], path + "[]")


def same_fields(ours: Schema, theirs: dict[str, Any], path: str) -> Iterator[str]:
    names = set(theirs["properties"]) - {"ephemeralContainers"}
    ours_names = set(ours.fields) - {"ephemeralContainers"}
    # One definition serves ephemeral and other containers, and a pod template carries whole metadata.
    if names != ours_names - {"targetContainerName"}:
        yield f"{path}: {sorted(names ^ ours_names)}"
    for name in sorted(names & ours_names - {"metadata"}):
        yield from same(ours.fields[name], theirs["properties"][name], f"{path}.{name}")


@pytest.mark.slow
@pytest.mark.skipif(
    not (SHARED / "crds").is_dir(), reason="no definitions are on this machine"
)
@pytest.mark.parametrize(
    "kind",
    [k for k in KINDS if k.group in {KUEUE_GROUP, JOBSET_GROUP}],
    ids=lambda k: str(k.kind),
)
def test_schemas_agree_with_the_definitions_that_kueue_and_jobset_ship(
    kind: Kind,
) -> None:
    yaml = pytest.importorskip("yaml")
    definition = yaml.safe_load(
        (SHARED / "crds" / f"{kind.group}_{kind.plural}.yaml").read_text()
    )
    version = next(
        v for v in definition["spec"]["versions"] if v["name"] == kind.version
    )
    properties = dict(version["schema"]["openAPIV3Schema"]["properties"])
    properties.pop("metadata")
    schema = schema_for(kind)
    assert set(properties) == set(schema.fields) - {"metadata"}
    lines = [
        line
        for name in properties
        for line in same(schema.fields[name], properties[name], f".{name}")
    ]
    assert lines == []
