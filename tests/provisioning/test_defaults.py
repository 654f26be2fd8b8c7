"""What others add beside the portal's own fields is found, whatever it is and wherever it stands."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioning.desired.manifests import Manifest, fleet_objects, tenancy_objects
from provisioning.desired.plan import Key, Verb, plan, removal
from provisioning.drift.comparing import differences
from provisioning.drift.defaults import FILLED_IN, additions, filled_in
from provisioning.drift.paths import text_of
from tests.provisioning.specs import sample
from tests.recordings.replaying import steps_of

SPEC = sample(jupyterhub_namespace="jupyterhub", dashboards=True)
TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
OBJECTS = [
    *fleet_objects(
        cohort="quartermaster", flavors=[("a100-80gb", {"gpu": "a100"}, [TAINT])]
    ),
    *tenancy_objects(SPEC),
]
# Kinds whose spec the cluster keeps, and the two fields that clusters with a registry of their own write.
LEFT_TO_OTHERS = {"Namespace", "PersistentVolumeClaim"}
OWNED = [one for one in OBJECTS if one["kind"] not in LEFT_TO_OTHERS]
VALUES = st.recursive(
    st.sampled_from(["", "0", "None", "Never", "HoldAndDrain", 0, 1, True, False]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "policy", "nvidia.com/gpu"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(
    ["ingress", "stopPolicy", "min", "parentName", "configmaps", "immutable", "x.io/y"]
)
GOLDEN = (
    "02a-ssa-golden",
    "05-resourcequota",
    "06-limitrange",
    "07-rbac",
    "09-kueue-objects",
)
OURS = {
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "RoleBinding",
    "NetworkPolicy",
    "ClusterQueue",
    "Cohort",
    "LocalQueue",
    "ResourceFlavor",
    "PriorityClass",
    "WorkloadPriorityClass",
    "ConfigMap",
    "Namespace",
    "PersistentVolumeClaim",
}


def maps_in(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Every map of an object that is the portal's as a whole: not its metadata, not its status."""
    pending: list[Any] = [
        value for name, value in manifest.items() if name not in ("metadata", "status")
    ]
    yield manifest
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def after_removal(live: Any, patch: Any) -> Any:
    """RFC 7386, as far as a removal goes."""
    found = dict(live)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = after_removal(found.get(name, {}), value)
    return found


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300)
def test_any_field_that_somebody_adds_is_found_named_and_taken_away(
    data: st.DataObject,
) -> None:
    wanted = data.draw(st.sampled_from(OWNED))
    live = deepcopy(wanted)
    chosen = data.draw(st.sampled_from(list(maps_in(live))))
    name = data.draw(NAMES.filter(lambda name: name not in chosen))
    chosen[name] = data.draw(VALUES)
    is_default = (name, chosen[name]) == ("stopPolicy", "None")
    if (
        wanted["kind"] in ("ClusterQueue", "LocalQueue")
        and chosen is live["spec"]
        and is_default
    ):
        assert plan([wanted], {Key.of(live): live})[0].verb is Verb.KEEP
        return
    [step] = plan([wanted], {Key.of(live): live})
    assert step.verb is Verb.UPDATE
    assert f"{name} was added" in step.why
    assert any(text_of(field.at).endswith(name) for field in differences(wanted, live))
    # What stands in a list goes with the list, which the manifest writes as a whole.
    in_a_list = not any(at[-1] == name for at in additions(wanted, live))
    cleaned = live if step.removal is None else after_removal(live, step.removal)
    assert in_a_list or not list(differences(wanted, cleaned))


@pytest.mark.slow
@given(st.dictionaries(NAMES, VALUES))
def test_what_others_put_into_metadata_and_status_is_theirs(
    more: dict[str, Any],
) -> None:
    for wanted in OBJECTS:
        live = deepcopy(wanted) | {"status": more}
        live["metadata"]["annotations"] = more | live["metadata"].get("annotations", {})
        live["metadata"]["labels"] |= {f"theirs/{name}": "x" for name in more}
        assert plan([wanted], {Key.of(live): live})[0].verb is Verb.KEEP


def recorded() -> Iterator[tuple[str, Manifest, Manifest]]:
    """Every object that a real API server took as it was applied, and how it stood afterwards."""
    for name in GOLDEN:
        for step in steps_of(name):
            sent, got = step["request"]["body"], step["response"]["body"]
            applied = (
                step["request"]["headers"]
                .get("content-type", "")
                .startswith("application/apply")
            )
            if applied and step["response"]["status"] in (200, 201) and is_ours(got):
                yield f"{name}:{step['name']}", sent, got


def is_ours(got: Manifest) -> bool:
    """Whether it is of a kind, and of the version of it, that the portal writes."""
    return got["kind"] in OURS and got["apiVersion"] != "kueue.x-k8s.io/v1beta1"


def is_about_gpu_defaults(sent: Manifest) -> bool:
    """Whether it is a LimitRange of GPUs, which fills in what the portal never writes."""
    return sent["kind"] == "LimitRange" and "nvidia" in json.dumps(sent["spec"])


RECORDED = [each for each in recorded() if not is_about_gpu_defaults(each[1])]


def test_the_recordings_hold_every_kind_that_the_portal_applies() -> None:
    assert {got["kind"] for _, _, got in RECORDED} >= OURS


@pytest.mark.parametrize(
    ("where", "sent", "got"), RECORDED, ids=[each[0] for each in RECORDED]
)
def test_what_a_real_api_server_fills_in_is_no_difference(
    where: str, sent: Manifest, got: Manifest
) -> None:
    assert [field.at for field in differences(sent, got) if field.wanted is None] == []


def test_a_removal_is_for_the_version_that_was_compared_alone() -> None:
    wanted = next(one for one in OWNED if one["kind"] == "NetworkPolicy")
    live = deepcopy(wanted)
    live["metadata"] |= {"uid": "u-1", "resourceVersion": "7"}
    live["spec"]["egress"] = [{}]
    assert removal(wanted, live) == {
        "metadata": {"uid": "u-1", "resourceVersion": "7"},
        "spec": {"egress": None},
    }
    assert removal(wanted, wanted) is None


def test_a_document_that_is_no_manifest_may_hold_anything() -> None:
    assert filled_in({"spec": {}}) is None
    assert filled_in([]) is None


def test_the_list_of_what_is_filled_in_names_only_kinds_that_the_portal_writes() -> (
    None
):
    with_volcano = tenancy_objects(sample(queueing="volcano", flavors=()))
    assert FILLED_IN.keys() <= {one["kind"] for one in [*OBJECTS, *with_volcano]}


def of_kind(kind: str) -> Manifest:
    """A copy of the first object of this kind."""
    return deepcopy(next(one for one in OBJECTS if one["kind"] == kind))


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("ServiceAccount", {"secrets": [{"name": "builder-token"}]}),
        ("ServiceAccount", {"imagePullSecrets": [{"name": "builder-dockercfg"}]}),
        ("Cohort", {"spec": {}}),
        ("ResourceFlavor", {"spec": {}}),
    ],
)
def test_what_a_cluster_writes_into_an_object_by_itself_is_left_there(
    kind: str, more: Manifest
) -> None:
    wanted = of_kind(kind)
    wanted.pop("spec", None)

    assert list(additions(wanted, wanted | more)) == []


@pytest.mark.parametrize("more", [{"weight": 1}, None, "", [{}]], ids=repr)
def test_a_cohort_without_a_spec_takes_an_empty_one_alone(more: Any) -> None:
    wanted = of_kind("Cohort")
    wanted.pop("spec", None)

    assert list(additions(wanted, wanted | {"spec": more})) == [("spec",)]


@pytest.mark.parametrize(
    ("name", "value", "is_default"),
    [
        ("queueingStrategy", "BestEffortFIFO", True),
        ("queueingStrategy", "StrictFIFO", False),
        (
            "flavorFungibility",
            {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            True,
        ),
        ("flavorFungibility", {"whenCanBorrow": "MayStopSearch"}, True),
        (
            "flavorFungibility",
            {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
            False,
        ),
        (
            "flavorFungibility",
            {"whenCanBorrow": "MayStopSearch", "preference": "Cheap"},
            False,
        ),
        ("flavorFungibility", "MayStopSearch", False),
    ],
)
def test_of_a_queue_kueues_defaults_are_left_and_every_other_value_is_found(
    name: str, value: Any, *, is_default: bool
) -> None:
    wanted = of_kind("ClusterQueue")
    wanted["spec"].pop(name, None)
    live = deepcopy(wanted)
    live["spec"][name] = value

    assert list(additions(wanted, live)) == ([] if is_default else [("spec", name)])


@pytest.mark.parametrize("kept", ["", None, 0, ["x"]], ids=repr)
def test_what_stands_where_a_map_is_wanted_has_no_additions(kept: Any) -> None:
    wanted = of_kind("ClusterQueue")

    assert list(additions(wanted, wanted | {"spec": kept})) == []
