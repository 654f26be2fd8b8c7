"""Whatever anybody types, no object leaves the team's own space, reaches two, or asks for more than there is."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.names import RESOURCE
from provisioning.desired.manifests import (
    CPU_FLAVOR,
    GPU,
    PRIORITIES,
    TEAM_ROLE,
    Manifest,
    fleet_objects,
    tenancy_objects,
)
from provisioning.desired.naming import NameRefused, namespace_of, slug_of
from provisioning.desired.rights import RUN_ROLE
from provisioning.desired.spec import (
    LARGEST_GPUS,
    FlavorQuota,
    SpecRefused,
    TenancySpec,
)
from sandbox.kubernetes import quantities
from sandbox.kubernetes.kinds import by_kind
from sandbox.kubernetes.validation import create_causes
from tests.provisioning.specs import SAMPLE, specs

HOSTILE = (
    st.text(max_size=80)
    | st.text(alphabet="abz09-._/: {}$\n\x00*&!'\"", max_size=80)
    | st.sampled_from(
        [
            "",
            "kube-system",
            "default",
            "*",
            "system:masters",
            "cluster-admin",
            "qm-vision-detection-091701",
            "a: b\nkind: Secret",
            "{{ x }}",
            "../../secrets",
            "a" * 64,
            "ａ",
            "vіsion",
            "quartermaster-cpu",
            "qm-",
            "nvidia.com/gpu",
            "-1",
            "1e9",
            "null",
            "a\n",
            "00000000-0000-4000-9000-000000000001\n",
        ]
    )
)
ANYTHING = (
    HOSTILE
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.lists(HOSTILE, max_size=2)
)
OUR_SPACE = re.compile(
    r"qm-[a-z0-9-]{1,54}[a-z0-9]-[0-9a-f]{6}|qm-[a-z0-9]-[0-9a-f]{6}"
)
OTHERS = {"kube-system"}
TEXTS = [
    "team",
    "project",
    "cost_centre",
    "environment",
    "namespace",
    "entra_group",
    "cohort",
    "storage_class",
    "jupyterhub_namespace",
    "stop",
    "weight",
    "tenancy",
    "base_cpu",
    "base_memory_gib",
    "dashboards",
    "access",
    "installation",
    "highest_priority",
]
MANY = settings(max_examples=150)


def selectors(value: Any) -> Iterator[dict[str, Any]]:
    """Every namespaceSelector anywhere in an object."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "namespaceSelector":
                yield inner
            yield from selectors(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from selectors(inner)


def check_contained(spec: TenancySpec) -> None:
    """That the objects of a spec are in one space of ours, reach named ones, and bind one group to one role."""
    space = namespace_of(team=spec.team, project=spec.project)
    assert OUR_SPACE.fullmatch(space)
    allowed = {
        space,
        *OTHERS,
        spec.jupyterhub_namespace,
        *(service.namespace for service in spec.services),
    }
    for manifest in tenancy_objects(spec):
        kind = by_kind(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        metadata = manifest["metadata"]
        assert (metadata["namespace"] if kind.namespaced else metadata["name"]) == space
        assert "kubernetes.io/metadata.name" not in metadata["labels"]
        for selector in selectors(manifest):
            assert list(selector) == ["matchLabels"]
            assert list(selector["matchLabels"]) == ["kubernetes.io/metadata.name"]
            assert selector["matchLabels"]["kubernetes.io/metadata.name"] in allowed - {
                ""
            }
        if manifest["kind"] == "NetworkPolicy":
            check_doors(manifest["spec"])
        if manifest["kind"] == "RoleBinding":
            role, bound = (
                manifest["roleRef"],
                [(s["kind"], s["name"]) for s in manifest["subjects"]],
            )
            assert (role["kind"], role["name"]) in (
                ("ClusterRole", TEAM_ROLE),
                ("ClusterRole", RUN_ROLE),
            )
            if role["name"] == TEAM_ROLE:
                assert bound in ([("Group", spec.entra_group)], [])
            else:
                # Of a namespace whose team has left nobody is bound any more.
                assert bound in (
                    [("ServiceAccount", "provisioner"), ("User", "quartermaster")],
                    [],
                )
        assert create_causes(kind, manifest) == []


def check_doors(policy: Manifest) -> None:
    """That every door of a policy leads to pods of one namespace, or to the resolver of the own host."""
    for rule in [*policy.get("ingress", []), *policy.get("egress", [])]:
        [(way, peers)] = [
            (name, value) for name, value in rule.items() if name in ("from", "to")
        ]
        assert peers, way
        for peer in peers:
            if "ipBlock" in peer:
                assert (way, peer["ipBlock"]["cidr"]) == ("to", "169.254.0.0/16")
                assert {port["port"] for port in rule["ports"]} == {53}
            elif "namespaceSelector" in peer:
                assert peer["podSelector"]["matchLabels"]
                assert rule["ports"]
            else:
                assert peer == {"podSelector": {}}


def is_of_priorities(manifest: Manifest) -> bool:
    """Whether it is the quota of closed priorities, which has no room for anything."""
    return bool(manifest["metadata"]["name"] == "team-priorities")


def check_bounded(spec: TenancySpec) -> None:
    """That no quota is above what its flavor may have, one by one and in the sum."""
    objects = {
        manifest["kind"]: manifest
        for manifest in tenancy_objects(spec)
        if not is_of_priorities(manifest)
    }
    [group] = objects["ClusterQueue"]["spec"]["resourceGroups"]
    ceiling = {flavor.name: flavor for flavor in spec.flavors}
    for flavor in group["flavors"]:
        for resource in flavor["resources"]:
            if not RESOURCE.fullmatch(resource["name"]):
                continue
            most = ceiling[flavor["name"]].gpus if flavor["name"] != CPU_FLAVOR else 0
            assert quantities.compare(resource["nominalQuota"], most) <= 0
            assert (
                quantities.compare(resource["borrowingLimit"], resource["nominalQuota"])
                <= 0
            )
            assert quantities.compare(resource["nominalQuota"], LARGEST_GPUS) <= 0
    hard = objects["ResourceQuota"]["spec"]["hard"]
    for resource in (name for name in hard if "nvidia.com" in name):
        room = sum(f.room for f in spec.flavors if f"requests.{f.resource}" == resource)
        assert quantities.compare(hard[resource], room if spec.access else 0) == 0


@pytest.mark.slow
@settings(max_examples=25)
@given(specs())
def test_whatever_may_be_wanted_stays_in_its_space_and_below_its_ceiling(
    spec: TenancySpec,
) -> None:
    check_contained(spec)
    check_bounded(spec)


@MANY
@given(st.sampled_from(TEXTS), ANYTHING)
@example("namespace", "kube-system")
@example("namespace", namespace_of(team="vision", project="other"))
@example("entra_group", "system:masters")
@example("jupyterhub_namespace", SAMPLE.namespace)
@example("cohort", "a\nb")
@example("weight", True)
@example("tenancy", "7")
@example("environment", 1)
def test_a_stored_field_that_is_anything_is_refused_or_harmless(
    field: str, value: Any
) -> None:
    try:
        spec = TenancySpec.from_json(SAMPLE.to_json() | {field: value})
    except SpecRefused:
        return
    assert type(getattr(spec, field)) is type(getattr(SAMPLE, field))
    check_contained(spec)
    check_bounded(spec)


@MANY
@given(
    st.sampled_from(
        [
            "name",
            "gpus",
            "borrow",
            "over",
            "cpu_per_gpu",
            "memory_gib_per_gpu",
            "resource",
        ]
    ),
    ANYTHING,
)
@example("gpus", 10**30)
@example("gpus", float("nan"))
@example("gpus", True)
@example("borrow", 3)
@example("name", CPU_FLAVOR)
@example("name", "h100-80gb")
@example("resource", "cpu")
@example("resource", "nvidia.com/mig-1g.10gb\n")
def test_a_stored_flavor_that_is_anything_is_refused_or_harmless(
    field: str, value: Any
) -> None:
    stored = json.loads(json.dumps(SAMPLE.to_json()))
    stored["flavors"][0][field] = value
    try:
        spec = TenancySpec.from_json(stored)
    except SpecRefused:
        return
    check_contained(spec)
    check_bounded(spec)


SERVICE = {
    "name": "mlflow",
    "namespace": "mlflow",
    "labels": {"app": "mlflow"},
    "port": 5000,
}


@MANY
@given(
    st.sampled_from(["name", "namespace", "labels", "port"]),
    ANYTHING | st.dictionaries(HOSTILE, ANYTHING, max_size=2),
)
@example("labels", {})
@example("labels", {"app": None})
@example("labels", {"app": ["a"]})
@example("namespace", SAMPLE.namespace)
@example("namespace", "")
@example("port", 0)
@example("port", 65_536)
def test_a_shared_service_that_is_anything_is_refused_or_harmless(
    field: str, value: Any
) -> None:
    try:
        spec = TenancySpec.from_json(
            SAMPLE.to_json() | {"services": [SERVICE | {field: value}]}
        )
    except SpecRefused:
        return
    check_contained(spec)


@pytest.mark.parametrize(
    "services",
    [
        ["mlflow"],
        [{}],
        [SERVICE | {"selector": {}}],
        [SERVICE, SERVICE],
        [None],
        [SERVICE | {"labels": "a"}],
    ],
)
def test_what_is_no_list_of_services_is_refused(services: Any) -> None:
    with pytest.raises(SpecRefused):
        TenancySpec.from_json(SAMPLE.to_json() | {"services": services})


def test_a_flavor_named_twice_would_count_twice_and_is_refused() -> None:
    twice = (FlavorQuota(name="a100", gpus=1), FlavorQuota(name="a100", gpus=1))
    with pytest.raises(SpecRefused, match="each once"):
        TenancySpec.from_json(
            SAMPLE.to_json() | {"flavors": [vars(flavor) for flavor in twice]}
        )


@MANY
@given(st.tuples(HOSTILE, HOSTILE), st.tuples(HOSTILE, HOSTILE))
@example(("a-b", "c"), ("a", "b-c"))
@example(("R&D", "x"), ("r d", "x"))
def test_two_teams_or_projects_never_share_a_name_on_the_cluster(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    try:
        pairs = {(slug_of(team), slug_of(project)) for team, project in (one, other)}
    except NameRefused:
        return
    names = {namespace_of(team=team, project=project) for team, project in pairs}
    assert len(names) == len(pairs)
    assert all(OUR_SPACE.fullmatch(name) for name in names)


def cluster_wide(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {
        (m["kind"], m["metadata"]["name"])
        for m in manifests
        if "namespace" not in m["metadata"]
    }


@pytest.mark.slow
@settings(max_examples=25)
@given(specs(), specs())
def test_cluster_wide_names_are_derived_from_the_space_or_fixed(
    one: TenancySpec, other: TenancySpec
) -> None:
    for spec in (one, other):
        found = cluster_wide(tenancy_objects(spec))
        assert found == {
            ("Namespace", spec.namespace),
            ("ClusterQueue", spec.namespace),
        }
    if (one.team, one.project) != (other.team, other.project):
        assert not cluster_wide(tenancy_objects(one)) & cluster_wide(
            tenancy_objects(other)
        )
    shared = cluster_wide(
        fleet_objects(cohort="lab", flavors=[(f.name, {}, []) for f in one.flavors])
    )
    assert {name for kind, name in shared if kind.endswith("PriorityClass")} == set(
        PRIORITIES
    )
    assert {name for kind, name in shared if kind == "ResourceFlavor"} == {
        CPU_FLAVOR,
        *(f.name for f in one.flavors),
    }
    assert GPU not in str(fleet_objects(cohort="lab", flavors=[]))
