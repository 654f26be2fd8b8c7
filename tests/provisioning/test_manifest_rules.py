"""No desired state may make anything else of a tenancy's objects: rules, schemas and Kueue's own definitions."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from provisioning.desired.manifests import (
    GPU,
    Manifest,
    count,
    fleet_objects,
    labels,
    tenancy_objects,
)
from provisioning.desired.plan import NEVER_PRUNED
from provisioning.desired.spec import FlavorQuota, TenancySpec
from sandbox.kubernetes import quantities, schema
from sandbox.kubernetes.kinds import KUEUE_GROUP, by_kind
from sandbox.kubernetes.validation import create_causes
from tests.provisioning.specs import SAMPLE, sample, specs

SHARED = Path(os.environ.get("QM_SHARED", Path(__file__).parents[3] / "shared"))
CRDS = SHARED / "crds"
KUEUE = "kueue.x-k8s.io/v1beta2"
# A spec is large; what could break a rule is in its flavors, and twenty-five of those find it.
FEW = settings(max_examples=25)


def by_kind_of(spec: TenancySpec, kind: str) -> Manifest:
    found = [manifest for manifest in tenancy_objects(spec) if manifest["kind"] == kind]
    [one] = [
        manifest
        for manifest in found
        if manifest["metadata"]["name"] != "team-priorities"
    ]
    return one


def numbers(queue: Manifest, resource_name: str) -> Iterator[tuple[Any, Any]]:
    for group in queue["spec"]["resourceGroups"]:
        for flavor in group["flavors"]:
            for entry in flavor["resources"]:
                if entry["name"] == resource_name:
                    yield entry["nominalQuota"], entry["borrowingLimit"]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


@pytest.mark.slow
@FEW
@given(specs())
def test_gpus_never_stand_in_a_limit_range(spec: TenancySpec) -> None:
    assert "nvidia.com" not in str(by_kind_of(spec, "LimitRange"))
    assert all(
        "limits.nvidia.com" not in str(manifest) for manifest in tenancy_objects(spec)
    )


@pytest.mark.slow
@FEW
@given(specs())
def test_the_quota_is_never_below_what_the_queue_can_admit(spec: TenancySpec) -> None:
    hard, queue = (
        by_kind_of(spec, "ResourceQuota")["spec"]["hard"],
        by_kind_of(spec, "ClusterQueue"),
    )
    [group] = queue["spec"]["resourceGroups"]
    assert set(group["coveredResources"]) == {
        "cpu",
        "memory",
        GPU,
        *(f.resource for f in spec.flavors),
    }
    for name in group["coveredResources"]:
        admitted = quantities.add(
            *(part for pair in numbers(queue, name) for part in pair)
        )
        assert quantities.compare(hard[f"requests.{name}"], admitted) >= 0
    for resource in group["coveredResources"][2:]:
        of = [
            flavor.gpus if flavor.resource == resource else 0 for flavor in spec.flavors
        ]
        assert [nominal for nominal, _ in numbers(queue, resource)] == [
            "0",
            *map(count, of),
        ]
        room = sum(f.room for f in spec.flavors if f.resource == resource)
        assert hard[f"requests.{resource}"] == count(room)


@pytest.mark.slow
@FEW
@given(specs())
def test_the_queue_serves_its_own_namespace_alone(spec: TenancySpec) -> None:
    queue = by_kind_of(spec, "ClusterQueue")
    assert queue["apiVersion"] == KUEUE
    assert queue["spec"]["namespaceSelector"] == {
        "matchLabels": {"kubernetes.io/metadata.name": spec.namespace}
    }
    assert queue["spec"]["cohortName"] == spec.cohort
    assert "cohort" not in queue["spec"]
    assert (
        by_kind_of(spec, "LocalQueue")["spec"]["clusterQueue"]
        == queue["metadata"]["name"]
    )


@pytest.mark.slow
@FEW
@given(specs())
def test_only_the_groups_object_id_is_bound_to_the_fixed_role(
    spec: TenancySpec,
) -> None:
    bindings = [one for one in tenancy_objects(spec) if one["kind"] == "RoleBinding"]
    binding, runs = bindings
    assert runs["roleRef"]["name"] == "quartermaster-runs"
    assert {s["name"] for s in runs["subjects"]} == {"provisioner", "quartermaster"}
    assert binding["roleRef"]["name"] == "quartermaster-team-user"
    assert [(s["kind"], s["name"]) for s in binding["subjects"]] == [
        ("Group", spec.entra_group)
    ]
    assert not {"ClusterRoleBinding", "ClusterRole", "Role"} & {
        m["kind"] for m in tenancy_objects(spec)
    }


@pytest.mark.slow
@FEW
@given(specs())
def test_every_object_carries_its_labels_and_none_leaves_the_namespace(
    spec: TenancySpec,
) -> None:
    for manifest in tenancy_objects(spec):
        marks = manifest["metadata"]["labels"]
        assert labels(spec).items() <= marks.items()
        assert all(
            re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", v)
            for v in marks.values()
        )
        kind = by_kind(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        assert manifest["metadata"].get("namespace") == (
            spec.namespace if kind.namespaced else None
        )
        # Only what is never pruned carries the marks that say so to Flux and Argo CD.
        kept = {"annotations"} if manifest["kind"] in NEVER_PRUNED else set()
        assert set(manifest["metadata"]) <= {"name", "namespace", "labels"} | kept


QUANTITIES = re.compile(
    r"/(hard|default|defaultRequest|max|requests)/|/(nominalQuota|borrowingLimit)$"
)


@pytest.mark.slow
@FEW
@given(specs())
def test_every_quantity_is_a_string_in_its_canonical_form(spec: TenancySpec) -> None:
    found = [
        leaf
        for manifest in tenancy_objects(spec)
        for leaf in leaves(manifest)
        if QUANTITIES.search(leaf[0])
    ]
    assert len(found) > 15
    assert all(isinstance(value, str) for _, value in found)
    assert [value for _, value in found] == [
        quantities.canonical(value) for _, value in found
    ]


FLEET = fleet_objects(
    cohort="lab",
    flavors=[
        (
            "a100",
            {"accelerator": "a100"},
            [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
        )
    ],
)


@pytest.mark.slow
@FEW
@given(specs())
def test_every_object_fits_the_schema_and_the_rules_of_its_kind(
    spec: TenancySpec,
) -> None:
    for manifest in [*tenancy_objects(spec), *FLEET]:
        kind = by_kind(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        assert [str(error) for error in schema.errors(kind, manifest)] == []
        assert schema.strict_unknown_fields(kind, manifest) == []
        assert create_causes(kind, manifest) == []


def closed(definition: Any) -> Any:
    """The schema with every field it does not name refused, as strict field validation does."""
    if isinstance(definition, list):
        return [closed(inner) for inner in definition]
    if not isinstance(definition, dict):
        return definition
    shut = {name: closed(inner) for name, inner in definition.items()}
    if isinstance(shut.get("properties"), dict) and not shut.get(
        "x-kubernetes-preserve-unknown-fields"
    ):
        shut.setdefault("additionalProperties", False)
    return shut


def validator(kind: str, version: str) -> Draft202012Validator:
    known = by_kind(f"{KUEUE_GROUP}/{version}", kind)
    assert known is not None
    definition = yaml.safe_load(
        (CRDS / f"{KUEUE_GROUP}_{known.plural}.yaml").read_text()
    )
    [served] = [
        each
        for each in definition["spec"]["versions"]
        if each["name"] == version and each["served"]
    ]
    return Draft202012Validator(closed(served["schema"]["openAPIV3Schema"]))


@pytest.fixture(scope="module")
def shipped() -> dict[str, Draft202012Validator]:
    """The definitions that Kueue ships, by kind."""
    if not CRDS.is_dir():
        pytest.skip("the definitions of Kueue are not on this machine")
    kinds = [
        "Cohort",
        "ClusterQueue",
        "LocalQueue",
        "ResourceFlavor",
        "WorkloadPriorityClass",
    ]
    return {kind: validator(kind, "v1beta2") for kind in kinds}


@FEW
@given(spec=specs())
def test_every_kueue_object_fits_the_definitions_kueue_ships(
    shipped: dict[str, Draft202012Validator], spec: TenancySpec
) -> None:
    for manifest in [*tenancy_objects(spec), *FLEET]:
        if manifest["apiVersion"] == KUEUE:
            body = manifest | {"metadata": {}}
            assert [
                error.message for error in shipped[manifest["kind"]].iter_errors(body)
            ] == []


def test_the_definitions_would_refuse_a_field_of_another_version(
    shipped: dict[str, Draft202012Validator],
) -> None:
    queue = by_kind_of(SAMPLE, "ClusterQueue") | {"metadata": {}}
    queue["spec"] = queue["spec"] | {"cohort": "quartermaster"}
    assert "'cohort' was unexpected" in str(
        [error.message for error in shipped["ClusterQueue"].iter_errors(queue)]
    )


def test_as_many_flavors_as_kueue_takes_fit(
    shipped: dict[str, Draft202012Validator],
) -> None:
    flavors = tuple(FlavorQuota(name=f"f{number:02d}", gpus=1) for number in range(15))
    queue = by_kind_of(sample(flavors=flavors), "ClusterQueue") | {"metadata": {}}
    assert [error.message for error in shipped["ClusterQueue"].iter_errors(queue)] == []
