"""The objects of a tenancy on a cluster whose queues are Volcano's, and what becomes of them when its team leaves."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from provisioning.desired.first_job import Kind, as_yaml, first_job
from provisioning.desired.manifests import fleet_objects, labels, tenancy_objects
from provisioning.desired.plan import Key, Verb, being_deleted, plan
from provisioning.desired.spec import FlavorQuota, SpecRefused, TenancySpec
from provisioning.removing import places
from tests.provisioning.specs import SAMPLE

FLAVORS = (
    FlavorQuota(name="a100-80gb", gpus=4, cpu_per_gpu=8, memory_gib_per_gpu=64),
    FlavorQuota(name="a100-small", gpus=0, resource="nvidia.com/mig-1g.10gb"),
)
SPEC = replace(SAMPLE, queueing="volcano", flavors=FLAVORS, weight=3)
VOLCANO = "scheduling.volcano.sh/v1beta1"
RUNS = "portal-runs"


def named(spec: TenancySpec) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (one["kind"], one["metadata"]["name"]): one for one in tenancy_objects(spec)
    }


def queue(spec: TenancySpec) -> dict[str, Any]:
    return named(spec)["Queue", spec.namespace]


def test_its_queue_has_the_name_of_the_namespace_and_what_the_team_holds() -> None:
    amounts = {
        "cpu": "48",
        "memory": "320Gi",
        "nvidia.com/gpu": "4",
        "nvidia.com/mig-1g.10gb": "0",
    }
    assert queue(SPEC) == {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": {"name": SPEC.namespace, "labels": labels(SPEC)},
        "spec": {
            "weight": 3,
            "reclaimable": True,
            "deserved": amounts,
            "capability": amounts,
        },
    }


def test_what_may_be_borrowed_is_beyond_what_it_deserves() -> None:
    spec = replace(SPEC, flavors=(replace(FLAVORS[0], borrow=2),))
    found = queue(spec)["spec"]
    assert (
        found["deserved"]["nvidia.com/gpu"],
        found["capability"]["nvidia.com/gpu"],
    ) == ("4", "6")
    assert (found["deserved"]["cpu"], found["capability"]["cpu"]) == ("48", "64")


def test_without_a_base_cpu_and_memory_are_the_least_for_nothing_is_no_limit_to_volcano() -> (
    None
):
    found = queue(replace(SPEC, base_cpu=0, base_memory_gib=0, flavors=()))["spec"]
    assert found["capability"] == {"cpu": "1m", "memory": "1", "nvidia.com/gpu": "0"}


def test_nothing_of_kueue_is_there_and_the_rest_is_as_elsewhere() -> None:
    with_kueue, with_volcano = named(replace(SPEC, queueing="kueue")), named(SPEC)
    assert with_kueue.keys() - with_volcano.keys() == {
        ("ClusterQueue", SPEC.namespace),
        ("LocalQueue", "default"),
    }
    assert with_volcano.keys() - with_kueue.keys() == {("Queue", SPEC.namespace)}
    assert not any(
        one["apiVersion"].startswith("kueue") for one in with_volcano.values()
    )
    assert (
        "kueue.x-k8s.io/managed"
        not in with_volcano["Namespace", SPEC.namespace]["metadata"]["labels"]
    )
    hard = with_volcano["ResourceQuota", "team-quota"]["spec"]["hard"]
    assert (hard["count/jobs.batch.volcano.sh"], hard["requests.nvidia.com/gpu"]) == (
        "200",
        "4",
    )
    dashboard = json.dumps(with_volcano["ConfigMap", "quartermaster-dashboard"])
    assert "kueue" not in dashboard
    assert (
        f'volcano_queue_pod_group_pending_count{{queue_name=\\\\\\"{SPEC.namespace}'
        in dashboard
    )


def test_all_teams_share_the_priorities_of_pods_alone() -> None:
    shared = fleet_objects(
        queueing="volcano", cohort="quartermaster", flavors=[("a100", {"a": "b"}, [])]
    )
    assert {one["kind"] for one in shared} == {"PriorityClass"}
    assert [one["metadata"]["name"] for one in shared] == [
        "production-inference",
        "scheduled-training",
        "exploratory",
        "best-effort",
    ]
    assert {one["preemptionPolicy"] for one in shared} == {"Never"}


def test_a_spec_that_was_stored_before_is_kueues() -> None:
    stored = SAMPLE.to_json()
    del stored["queueing"]
    assert TenancySpec.from_json(stored).queueing == "kueue"
    assert TenancySpec.from_json(SPEC.to_json()).has_volcano


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"queueing": "slurm"}, id="unknown queues"),
        pytest.param(
            {"flavors": (FLAVORS[0], replace(FLAVORS[0], name="b"))},
            id="two flavors of one resource",
        ),
    ],
)
def test_what_volcano_cannot_keep_is_no_spec(changed: dict[str, Any]) -> None:
    with pytest.raises(SpecRefused):
        replace(SPEC, **changed)


NOTHING = {
    "cpu": "1m",
    "memory": "1",
    "nvidia.com/gpu": "0",
    "nvidia.com/mig-1g.10gb": "0",
}


def test_held_its_queue_is_one_of_nothing_and_what_runs_is_not_taken_back() -> None:
    held = named(replace(SPEC, stop="Hold"))
    assert held["Queue", SPEC.namespace]["spec"] == {
        "weight": 3,
        "reclaimable": False,
        "deserved": NOTHING,
        "capability": NOTHING,
    }
    assert held.keys() == named(SPEC).keys()
    assert (
        held["ResourceQuota", "team-quota"]
        == named(SPEC)["ResourceQuota", "team-quota"]
    )


def test_drained_nobody_has_access_but_the_portal_which_stops_what_runs() -> None:
    left = named(replace(SPEC, stop="HoldAndDrain", access=False))
    assert left["Queue", SPEC.namespace]["spec"]["capability"] == NOTHING
    assert left["Queue", SPEC.namespace]["spec"]["reclaimable"] is True
    assert left["RoleBinding", "team-users"]["subjects"] == []
    assert left["RoleBinding", RUNS] == named(SPEC)["RoleBinding", RUNS]
    assert set(left["ResourceQuota", "team-quota"]["spec"]["hard"].values()) == {"0"}
    kueue = named(replace(SAMPLE, stop="HoldAndDrain", access=False))
    assert kueue["RoleBinding", RUNS]["subjects"] == []


FILLED_IN = {"dequeueStrategy": "traverse", "parent": "root", "guarantee": {}}


def live(**spec: Any) -> dict[str, Any]:
    wanted = queue(SPEC)
    return {
        **wanted,
        "spec": {**wanted["spec"], **spec},
        "status": {"state": "Open", "reservation": {}},
    }


def test_what_volcano_fills_in_is_no_drift_and_anything_else_is() -> None:
    wanted = [queue(SPEC)]
    [kept] = plan(wanted, {Key.of(wanted[0]): live(**FILLED_IN)})
    assert (kept.verb, kept.why) == (Verb.KEEP, "")
    for added in (
        {"parent": "others"},
        {"guarantee": {"resource": {"cpu": "1"}}},
        {"weight": 5},
    ):
        [step] = plan(wanted, {Key.of(wanted[0]): live(**added)})
        assert step.verb is Verb.UPDATE


def test_a_queue_that_somebody_deletes_says_what_that_means() -> None:
    found = live()
    found["metadata"] = {
        **found["metadata"],
        "finalizers": ["a/b"],
        "deletionTimestamp": "now",
    }
    assert being_deleted(found) == (
        "is being deleted; a/b holds it. Nothing new starts until it is gone and made anew"
    )


def test_the_queue_is_what_does_not_go_with_the_namespace() -> None:
    assert places(SPEC) == [((VOLCANO, "Queue"), None)]


def test_the_first_job_is_volcanos_in_the_queue_of_its_namespace() -> None:
    job = first_job(
        "qm-vision",
        Kind("a100", "nvidia.com/gpu", {"accelerator": "a100"}, []),
        queueing="volcano",
    )
    assert (job["apiVersion"], job["kind"], job["spec"]["queue"]) == (
        "batch.volcano.sh/v1alpha1",
        "Job",
        "qm-vision",
    )
    assert (job["spec"]["schedulerName"], job["spec"]["minAvailable"]) == ("volcano", 1)
    [task] = job["spec"]["tasks"]
    assert task["template"]["spec"]["nodeSelector"] == {"accelerator": "a100"}
    assert (
        task["template"]["spec"]["containers"][0]["resources"]["limits"][
            "nvidia.com/gpu"
        ]
        == "1"
    )
    assert yaml.safe_load(as_yaml(job)) == job
