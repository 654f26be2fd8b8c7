"""What is done about each object: nothing where nothing differs, and never anything to what is not ours."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from connectors.kubernetes import path, ref_of
from provisioning.desired.manifests import Manifest, fleet_objects, tenancy_objects
from provisioning.desired.plan import (
    Key,
    Step,
    Verb,
    being_deleted,
    first_difference,
    first_left_over,
    is_ours,
    plan,
)
from provisioning.desired.spec import FlavorQuota, TenancySpec
from tests.provisioning.specs import SAMPLE, sample, specs
from tests.recordings.replaying import Player

FEW = settings(max_examples=15)
DESIRED = tenancy_objects(SAMPLE)
QUOTA = next(manifest for manifest in DESIRED if manifest["kind"] == "ResourceQuota")
QUEUE = next(manifest for manifest in DESIRED if manifest["kind"] == "ClusterQueue")
DEFAULT = next(
    manifest
    for manifest in DESIRED
    if manifest["metadata"]["name"] == "default"
    and manifest["kind"] == "ServiceAccount"
)
APPLY = "application/apply-patch+yaml"


def where(manifest: Manifest) -> str:
    meta = manifest["metadata"]
    return path(ref_of(manifest), meta.get("namespace"), meta["name"])


def applied(player: Player, manifests: list[Manifest]) -> dict[Key, Manifest]:
    """What a cluster holds after these were applied."""
    for manifest in manifests:
        player.admin(
            "PATCH",
            f"{where(manifest)}?fieldManager=quartermaster&force=true",
            manifest,
            APPLY,
        )
    return {
        Key.of(manifest): player.admin("GET", where(manifest)) for manifest in manifests
    }


def verbs(steps: list[Step]) -> list[tuple[str, str]]:
    return [
        (step.verb.value, step.key.kind) for step in steps if step.verb is not Verb.KEEP
    ]


def on_cluster(**changes: Any) -> dict[Key, Manifest]:
    """The sample as it stands on a cluster, each object with these metadata added."""
    live = {Key.of(manifest): deepcopy(manifest) for manifest in DESIRED}
    for found in live.values():
        found["metadata"].update(changes)
    return live


def policy(**spec: Any) -> Manifest:
    """A NetworkPolicy of this spec."""
    return {"kind": "NetworkPolicy", "spec": spec}


def without(live: dict[Key, Manifest], kind: str) -> dict[Key, Manifest]:
    return {key: found for key, found in live.items() if key.kind != kind}


def test_an_empty_cluster_gets_everything_in_order() -> None:
    steps = plan(DESIRED, {})
    assert steps == [Step(Verb.CREATE, Key.of(m), m, "is missing") for m in DESIRED]


def test_what_stands_as_wanted_is_kept() -> None:
    assert plan(DESIRED, on_cluster()) == [
        Step(Verb.KEEP, Key.of(m), m) for m in DESIRED
    ]


def test_only_what_is_missing_is_created() -> None:
    assert verbs(plan(DESIRED, without(on_cluster(), "LimitRange"))) == [
        ("create", "LimitRange")
    ]


def test_a_changed_field_of_ours_is_written_and_the_step_says_which() -> None:
    live = on_cluster()
    live[Key.of(QUOTA)]["spec"]["hard"]["requests.nvidia.com/gpu"] = "64"
    [step] = [step for step in plan(DESIRED, live) if step.verb is not Verb.KEEP]
    wanted = ".spec.hard.requests.nvidia.com/gpu is '64', should be '3'"
    assert step == Step(Verb.UPDATE, Key.of(QUOTA), QUOTA, wanted)


def test_what_others_and_the_defaults_added_is_no_difference() -> None:
    live = on_cluster(uid="1", resourceVersion="5")
    for found in live.values():
        found["metadata"]["annotations"] = found["metadata"].get("annotations", {}) | {
            "theirs": "x"
        }
    live[Key.of(QUEUE)]["spec"]["preemption"]["borrowWithinCohort"] = {
        "policy": "Never"
    }
    live[Key.of(QUOTA)]["metadata"]["labels"]["theirs"] = "x"
    live[Key.of(QUOTA)]["status"] = {"hard": {}}
    assert verbs(plan(DESIRED, live)) == []


def test_a_missing_label_of_ours_is_put_back() -> None:
    live = on_cluster()
    del live[Key.of(QUOTA)]["metadata"]["labels"]["quartermaster.io/cost-center"]
    [step] = [step for step in plan(DESIRED, live) if step.verb is not Verb.KEEP]
    assert (step.verb, step.why) == (
        Verb.UPDATE,
        ".metadata.labels.quartermaster.io/cost-center is missing",
    )


@pytest.mark.parametrize(
    "marks",
    [
        None,
        {},
        {"app.kubernetes.io/managed-by": "Helm"},
        {"app.kubernetes.io/managed-by": "Quartermaster"},
        {
            "app.kubernetes.io/managed-by": "quartermaster",
            "quartermaster.io/tenancy": "8",
        },
        {"quartermaster.io/tenancy": "7"},
    ],
)
def test_what_is_not_ours_is_named_and_never_touched(
    marks: dict[str, str] | None,
) -> None:
    live = on_cluster()
    for found in live.values():
        found["metadata"] |= {"labels": marks}
    steps = [
        step for step in plan(DESIRED, live) if step.key != Key.of(DEFAULT) or marks
    ]
    assert {step.verb for step in steps} == {Verb.FOREIGN}
    assert (
        steps[0].why
        == f"Namespace {SAMPLE.namespace} exists and is not ours; it was not touched."
    )


@pytest.mark.parametrize("marks", [None, {}, {"example.com/reviewed": "yes"}])
def test_the_account_that_kubernetes_makes_itself_is_adopted(
    marks: dict[str, str] | None,
) -> None:
    live = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "labels": marks},
    }
    [step] = plan([DEFAULT], {Key.of(DEFAULT): live})
    assert (step.verb, step.manifest) == (Verb.UPDATE, DEFAULT)
    assert step.why == "was made by Kubernetes and is not marked as ours yet"


def test_no_other_account_without_a_mark_is_adopted() -> None:
    [wanted] = [one for one in DESIRED if one["metadata"]["name"] == "workload"]
    live = {**wanted, "metadata": {"name": "workload", "namespace": SAMPLE.namespace}}
    assert [step.verb for step in plan([wanted], {Key.of(wanted): live})] == [
        Verb.FOREIGN
    ]


def test_what_is_being_deleted_is_waited_for() -> None:
    steps = plan(DESIRED, on_cluster(deletionTimestamp="2026-11-20T12:00:00Z"))
    assert {step.verb for step in steps} == {Verb.KEEP}
    said = {step.key.kind: step.why for step in steps}
    assert said.pop("ClusterQueue") == (
        "is being deleted. Nothing new starts until it is gone and made anew"
    )
    assert set(said.values()) == {"is being deleted"}


def test_a_queue_that_is_being_deleted_says_what_holds_it_and_what_that_means() -> None:
    live = deepcopy(QUEUE)
    live["metadata"] |= {
        "deletionTimestamp": "2026-11-20T12:00:00Z",
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
    }
    live["status"] = {"admittedWorkloads": 1}
    [step] = plan([QUEUE], {Key.of(QUEUE): live})
    assert step.why == (
        "is being deleted; kueue.x-k8s.io/resource-in-use holds it. 1 workload of it still runs. "
        "Nothing new starts until it is gone and made anew"
    )
    assert (
        being_deleted(live | {"status": {"admittedWorkloads": 2}}).count(
            "2 workloads of it still run. "
        )
        == 1
    )


def strays() -> dict[Key, Manifest]:
    live = on_cluster()
    for kind, api, name in (
        ("Namespace", "v1", "qm-old"),
        ("PersistentVolumeClaim", "v1", "old-data"),
        ("ResourceQuota", "v1", "old-quota"),
        ("LocalQueue", "kueue.x-k8s.io/v1beta2", "old"),
    ):
        meta = {
            "name": name,
            "namespace": SAMPLE.namespace,
            "labels": QUOTA["metadata"]["labels"],
        }
        if kind == "Namespace":
            del meta["namespace"]
        found = {"apiVersion": api, "kind": kind, "metadata": meta}
        live[Key.of(found)] = found
    return live


def test_what_is_ours_and_not_wanted_goes_but_never_a_namespace_or_a_claim() -> None:
    assert verbs(plan(DESIRED, strays())) == [
        ("delete", "ResourceQuota"),
        ("delete", "LocalQueue"),
    ]
    assert [step.why for step in plan(DESIRED, strays())[-2:]] == [
        "is no longer wanted"
    ] * 2
    assert verbs(plan([], strays())).count(("delete", "ResourceQuota")) == 3
    assert {kind for _, kind in verbs(plan([], strays()))} & {
        "Namespace",
        "PersistentVolumeClaim",
    } == set()


def test_what_is_not_ours_and_not_wanted_stays() -> None:
    live = strays()
    for key in [key for key in live if key not in set(map(Key.of, DESIRED))]:
        live[key]["metadata"] = live[key]["metadata"] | {
            "labels": {"quartermaster.io/tenancy": "7"}
        }
    assert verbs(plan(DESIRED, live)) == []


@pytest.mark.parametrize(
    ("wanted", "live", "difference"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        ({"a": 1}, {"a": 2}, ".a is 2, should be 1"),
        ({"a": 1}, {}, ".a is missing"),
        ({"a": {}}, {}, ""),
        ({"a": []}, {}, ""),
        ({"a": {"b": 1}}, {"a": None}, ".a is missing"),
        ({"a": [1, 2]}, {"a": [2, 1]}, ".a[0] is 2, should be 1"),
        ({"a": [1]}, {"a": [1, 2]}, ".a differs"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, ""),
        ({"a": "1"}, {"a": 1}, ".a is 1, should be '1'"),
        ({"a": False}, {}, ".a is missing"),
        (
            policy(podSelector={}),
            policy(podSelector={"x": {}}),
            ".spec.podSelector.x was added",
        ),
        (
            policy(ingress=[{"from": [{}]}]),
            policy(ingress=[{"from": [{"b": {}}]}]),
            ".spec.ingress[0].from[0].b was added",
        ),
        (policy(), policy(ingress=[{}]), ".spec.ingress was added"),
        (policy(), policy(egress=[]), ".spec.egress was added"),
        (policy(), policy() | {"status": {"a": 1}, "metadata": {"b": 2}}, ""),
    ],
)
def test_a_difference_is_said_with_its_place(
    wanted: Any, live: Any, difference: str
) -> None:
    assert first_difference(wanted, live) == difference


@pytest.mark.slow
@FEW
@given(specs())
def test_a_cluster_to_which_everything_was_applied_needs_nothing(
    spec: TenancySpec,
) -> None:
    shared = fleet_objects(
        cohort=spec.cohort,
        flavors=[(f.name, {"gpu": f.name}, []) for f in spec.flavors],
    )
    desired = [*shared, *tenancy_objects(spec)]
    steps = plan(desired, applied(Player(), desired))
    assert [(step.verb, step.why) for step in steps] == [(Verb.KEEP, "")] * len(desired)


def test_a_flavor_no_longer_wanted_is_taken_out_of_the_queue() -> None:
    player = Player()
    both = applied(player, DESIRED)
    fewer = tenancy_objects(sample(flavors=SAMPLE.flavors[:1]))
    assert verbs(plan(fewer, both)) == [("update", "ClusterQueue")]
    assert verbs(plan(fewer, applied(player, fewer))) == []


def test_a_field_that_we_own_and_want_no_longer_is_given_up() -> None:
    player = Player()
    before = [m for m in DESIRED if m["kind"] in {"Namespace", "ResourceQuota"}]
    more = deepcopy(before)
    more[1]["spec"]["hard"]["count/configmaps"] = "5"
    more[1]["metadata"]["annotations"] = {"quartermaster.io/note": "x"}
    live = applied(player, more)
    [step] = [step for step in plan(before, live) if step.verb is not Verb.KEEP]
    assert step.verb is Verb.UPDATE
    assert step.why.endswith("is no longer wanted")
    assert first_left_over(before[1], live[Key.of(QUOTA)]) in {
        ".metadata.annotations",
        ".spec.hard.count/configmaps",
    }
    assert verbs(plan(before, applied(player, before))) == []


def test_a_field_of_another_manager_is_left_to_them() -> None:
    player = Player()
    before = [m for m in DESIRED if m["kind"] in {"Namespace", "ResourceQuota"}]
    applied(player, before)
    theirs = {"metadata": {"annotations": {"backup": "daily"}}}
    player.send(
        "admin",
        "PATCH",
        where(QUOTA),
        {"fieldManager": "velero"},
        {"content-type": "application/merge-patch+json"},
        theirs,
    )
    live = {
        Key.of(manifest): player.admin("GET", where(manifest)) for manifest in before
    }
    assert live[Key.of(QUOTA)]["metadata"]["annotations"] == {"backup": "daily"}
    assert verbs(plan(before, live)) == []


def test_more_gpus_change_the_quota_and_the_queue_alone() -> None:
    live = applied(Player(), DESIRED)
    more = replace(
        SAMPLE, flavors=(replace(SAMPLE.flavors[0], gpus=4), SAMPLE.flavors[1])
    )
    assert verbs(plan(tenancy_objects(more), live)) == [
        ("update", "ResourceQuota"),
        ("update", "ClusterQueue"),
    ]


def test_it_knows_what_carries_our_mark() -> None:
    assert is_ours(QUOTA)
    assert not is_ours({})
    assert not is_ours({"metadata": {"labels": None}})


@pytest.mark.parametrize("gpus", [125, 1000, 9_999])
def test_large_numbers_do_not_look_like_drift(gpus: int) -> None:
    spec = sample(flavors=(FlavorQuota(name="a100", gpus=gpus, borrow=gpus),))
    desired = tenancy_objects(spec)
    assert verbs(plan(desired, applied(Player(), desired))) == []


def owned(
    manifest: Manifest,
    fields: Any,
    *,
    manager: str = "quartermaster",
    by: str = "Apply",
) -> Manifest:
    """The object as it stands, with these fields on a manager's record of it."""
    live = deepcopy(manifest)
    live["metadata"]["managedFields"] = [
        {"manager": manager, "operation": by, "fieldsV1": fields}
    ]
    return live


PORTS: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {
        "names": ["a", "b"],
        "ports": [
            {"port": 80, "protocol": "TCP"},
            {"port": 443, "protocol": "TCP", "name": "tls"},
        ],
        "sizes": [1, 2],
    },
}
PLAIN, SECURE = 'k:{"port":80,"protocol":"TCP"}', 'k:{"port":443,"protocol":"TCP"}'
UDP = 'k:{"port":80,"protocol":"UDP"}'


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        pytest.param({"f:names": {'v:"a"': {}, 'v:"b"': {}}}, "", id="values of a set"),
        pytest.param(
            {"f:names": {'v:"b"': {}, 'v:"c"': {}}},
            ".spec.names[0]",
            id="a value of a set",
        ),
        pytest.param({"f:sizes": {"i:0": {}, "i:1": {}}}, "", id="places of a list"),
        pytest.param(
            {"f:sizes": {"i:1": {}, "i:2": {}}},
            ".spec.sizes[0]",
            id="a place of a list",
        ),
        pytest.param(
            {"f:ports": {PLAIN: {".": {}, "f:port": {}}, SECURE: {}}},
            "",
            id="items by key",
        ),
        pytest.param(
            {"f:ports": {UDP: {".": {}}}},
            ".spec.ports[0]",
            id="an item of which one key is otherwise",
        ),
        pytest.param(
            {"f:ports": {SECURE: {"f:port": {}, "f:name": {}}}},
            "",
            id="fields of an item",
        ),
        pytest.param(
            {"f:ports": {PLAIN: {}, SECURE: {".": {}, "f:nodePort": {}}}},
            ".spec.ports[1].nodePort",
            id="a field of an item",
        ),
        pytest.param(
            {"f:names": {PLAIN: {}}},
            ".spec.names[0]",
            id="a key where there are values",
        ),
        pytest.param({'v:"a"': {}}, ".spec[0]", id="a value of what is no list"),
        pytest.param(
            {"f:type": {'v:"a"': {}}}, ".spec.type", id="values of a field that is gone"
        ),
        pytest.param(
            {"f:names": {".": {}, "f:first": {}}},
            ".spec.names.first",
            id="a field of what is a list",
        ),
    ],
)
def test_of_a_list_we_give_up_only_what_we_own_in_it_and_want_no_longer(
    fields: Any, place: str
) -> None:
    assert first_left_over(PORTS, owned(PORTS, {"f:spec": fields})) == place


def test_what_is_left_over_in_a_list_is_named_where_it_stands() -> None:
    live = deepcopy(PORTS)
    live["spec"]["names"].append("c")

    assert (
        first_left_over(PORTS, owned(live, {"f:spec": {"f:names": {'v:"c"': {}}}}))
        == ".spec.names[2]"
    )


@pytest.mark.parametrize(
    ("manager", "by", "place"),
    [
        ("quartermaster", "Apply", ".spec.type"),
        ("quartermaster", "Update", ""),
        ("velero", "Apply", ""),
    ],
)
def test_only_what_our_own_apply_wrote_is_ours_to_give_up(
    manager: str, by: str, place: str
) -> None:
    live = owned(PORTS, {"f:spec": {"f:type": {}}}, manager=manager, by=by)

    assert first_left_over(PORTS, live) == place


def test_objects_of_one_name_in_two_namespaces_have_two_places() -> None:
    elsewhere = {**QUOTA, "metadata": {**QUOTA["metadata"], "namespace": "elsewhere"}}

    assert Key.of(QUOTA).namespace == SAMPLE.namespace
    assert Key.of(QUOTA) != Key.of(elsewhere)
    assert Key.of(QUEUE).namespace == ""
