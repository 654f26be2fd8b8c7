"""What somebody adds to an object of the portal, beside its own fields or within them, is found and taken away."""

import json
from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from connectors.errors import TemporaryError
from connectors.kubernetes import Ref
from fleet.models import Cluster
from provisioning.clusters.observe import look_at
from provisioning.delivery import client_for
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.plan import Key, plan
from provisioning.drift import actions as drift_actions
from provisioning.models import Drift
from provisioning.writing import write
from tests.provisioning.conftest import Place
from tests.provisioning.test_drifting import (
    BINDING,
    LIMITS,
    QUEUE,
    QUOTA,
    asking,
    one,
    passes,
    priya,
    true,
)

__all__ = ["asking", "priya", "true"]
pytestmark = pytest.mark.django_db

POLICY = ("networking.k8s.io/v1", "NetworkPolicy")
LOCAL_QUEUE = ("kueue.x-k8s.io/v1beta2", "LocalQueue")
COHORT, RESOURCE_FLAVOR = (
    ("kueue.x-k8s.io/v1beta2", "Cohort"),
    ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"),
)
PRIORITY = ("scheduling.k8s.io/v1", "PriorityClass")
DEFAULT = {"cpu": "2", "memory": "4Gi"}
REQUEST = {"cpu": "500m", "memory": "1Gi"}
CLAIM = {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}


def limits(**container: Any) -> dict[str, Any]:
    """The LimitRange's spec with these keys added for containers."""
    usual = {"type": "Container", "default": DEFAULT, "defaultRequest": REQUEST}
    return {"limits": [usual | container, CLAIM]}


ADDED: dict[str, tuple[Ref, str, dict[str, Any], str]] = {
    "a network that lets everything in": (
        POLICY,
        "default-deny",
        {"ingress": [{}]},
        "traffic let in (spec.ingress)",
    ),
    "a network that lets everything out": (
        POLICY,
        "default-deny",
        {"egress": [{}]},
        "traffic let out (spec.egress)",
    ),
    "a queue that borrows by pushing others out": (
        QUEUE,
        "",
        {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
        "(spec.preemption.borrowWithinCohort)",
    ),
    "a queue that waits for a check": (
        QUEUE,
        "",
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "never-there"}]}},
        "(spec.admissionChecksStrategy)",
    ),
    "a queue that tries other flavors first": (
        QUEUE,
        "",
        {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}},
        "(spec.flavorFungibility)",
    ),
    "a local queue that stops all jobs": (
        LOCAL_QUEUE,
        "default",
        {"stopPolicy": "HoldAndDrain"},
        "whether the queue takes jobs",
    ),
    "a GPU for every container": (
        LIMITS,
        "team-defaults",
        limits(default=DEFAULT | {"nvidia.com/gpu": "1"}),
        "nvidia.com/gpu",
    ),
    "a GPU for every container that names none": (
        LIMITS,
        "team-defaults",
        limits(defaultRequest=REQUEST | {"nvidia.com/gpu": "1"}),
        "nvidia.com/gpu",
    ),
    "a least size of containers": (
        LIMITS,
        "team-defaults",
        limits(min={"cpu": "400m"}),
        "spec.limits[0].min",
    ),
    "no ConfigMap at all": (
        QUOTA,
        "team-quota",
        {"hard": {"configmaps": "0"}},
        "what is allowed of configmaps",
    ),
    "a quota for some pods alone": (
        QUOTA,
        "team-quota",
        {"scopes": ["BestEffort"]},
        "spec.scopes",
    ),
}


def place_of(place: Place, ref: Ref, name: str) -> tuple[Ref, str, str | None]:
    """Where an object of the tenancy stands; one without a name is cluster-wide, and named after the namespace."""
    space = place.tenancy.namespace
    return (ref, name, space) if name else (ref, space, None)


@pytest.mark.slow
@pytest.mark.parametrize("case", ADDED.values(), ids=ADDED)
def test_what_somebody_adds_beside_our_fields_is_found_named_and_taken_away(
    true: Place, case: tuple[Ref, str, dict[str, Any], str]
) -> None:
    ref, name, spec, words = case
    where = place_of(true, ref, name)
    before = true.kubernetes.get(*where)
    true.kubernetes.patch(*where, {"spec": spec})
    assert passes(true) == 1
    after = true.kubernetes.get(*where)
    assert before is not None
    assert after is not None
    assert after["spec"] == before["spec"]
    assert (one().who, one().state) == ("kubectl-edit", "repaired")
    assert words in one().sentence
    assert passes(true) == 0
    assert Drift.objects.count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("case", ADDED.values(), ids=ADDED)
def test_where_leads_are_asked_it_waits_and_is_then_taken_away(
    asking: Place, priya: User, case: tuple[Ref, str, dict[str, Any], str]
) -> None:
    ref, name, spec, words = case
    where = place_of(asking, ref, name)
    before = asking.kubernetes.get(*where)
    asking.kubernetes.patch(*where, {"spec": spec})
    assert passes(asking) == 0
    assert words in one().sentence
    drift_actions.repair(one().pk, by=priya, now=asking.time)
    assert asking.reconcile() == 1
    after = asking.kubernetes.get(*where)
    assert (after or {})["spec"] == (before or {})["spec"]


def test_what_is_left_alone_stays_as_others_made_it_while_the_rest_is_put_right(
    asking: Place, priya: User
) -> None:
    where = (QUEUE, asking.tenancy.namespace, None)
    theirs = {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}
    asking.kubernetes.patch(*where, {"spec": theirs})
    passes(asking)
    until = asking.time + timedelta(days=3)
    drift_actions.ignore(
        one().pk, by=priya, reason="A trial.", until=until, now=asking.time
    )
    Cluster.objects.update(on_drift=Cluster.OnDrift.REPAIR)
    asking.kubernetes.patch(*where, {"spec": {"stopPolicy": "Hold"}})
    assert passes(asking) == 1
    found = (asking.kubernetes.get(*where) or {})["spec"]
    assert found["preemption"]["borrowWithinCohort"] == {"policy": "LowerPriority"}
    assert found["stopPolicy"] == "None"
    asking.later(days=3)
    assert passes(asking) == 1
    found = (asking.kubernetes.get(*where) or {})["spec"]
    assert found["preemption"]["borrowWithinCohort"] == {"policy": "Never"}


def test_a_field_that_is_written_between_the_look_and_the_repair_is_looked_at_again(
    true: Place,
) -> None:
    key = Key(
        "networking.k8s.io/v1", "NetworkPolicy", true.tenancy.namespace, "default-deny"
    )
    [manifest] = [
        one for one in tenancy_objects(true.row.desired) if Key.of(one) == key
    ]
    true.kubernetes.patch(key.ref, key.name, key.namespace, {"spec": {"egress": [{}]}})
    [step] = plan(
        [manifest], {key: true.kubernetes.get(key.ref, key.name, key.namespace) or {}}
    )
    true.kubernetes.patch(key.ref, key.name, key.namespace, {"spec": {"ingress": [{}]}})
    with pytest.raises(TemporaryError, match="was changed just now"):
        list(write(client_for(true.cluster), step))
    assert passes(true) == 1
    found = (true.kubernetes.get(key.ref, key.name, key.namespace) or {})["spec"]
    assert found == manifest["spec"]


def test_a_member_of_the_binding_that_somebody_adds_is_taken_out(true: Place) -> None:
    where = (BINDING, "team-users", true.tenancy.namespace)
    before = (true.kubernetes.get(*where) or {})["subjects"]
    more = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Group",
        "name": "system:authenticated",
    }
    true.kubernetes.patch(*where, {"subjects": [*before, more]})
    assert passes(true) == 1
    assert (true.kubernetes.get(*where) or {})["subjects"] == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ref", "name", "change", "without"),
    [
        (COHORT, "quartermaster", {"spec": {"parentName": "theirs"}}, "parentName"),
        (
            RESOURCE_FLAVOR,
            "quartermaster-cpu",
            {"spec": {"nodeLabels": {"pool": "x"}}},
            "nodeLabels",
        ),
        (RESOURCE_FLAVOR, "a100", {"spec": {"nodeLabels": {"pool": "x"}}}, '"pool"'),
        (PRIORITY, "best-effort", {"globalDefault": True}, "globalDefault"),
    ],
)
def test_what_somebody_adds_to_an_object_that_all_teams_share_is_taken_away(
    true: Place, ref: Ref, name: str, change: dict[str, Any], without: str
) -> None:
    look_at(true.cluster.pk, now=true.now)
    true.kubernetes.patch(ref, name, None, change)
    written = true.kubernetes.writes
    look_at(true.cluster.pk, now=true.now)
    found = true.kubernetes.get(ref, name) or {}
    assert without not in json.dumps(
        {key: value for key, value in found.items() if key != "metadata"}
    )
    assert true.kubernetes.writes == written + 1
    look_at(true.cluster.pk, now=true.now)
    assert true.kubernetes.writes == written + 1


@pytest.mark.parametrize(
    ("name", "spec", "words"),
    [
        (
            "allow-own-and-dns",
            {"ingress": [{"from": [{"podSelector": {}, "namespaceSelector": {}}]}]},
            "which namespaces (spec.ingress[0].from[0].namespaceSelector)",
        ),
        (
            "default-deny",
            {"podSelector": {"matchLabels": {"nobody": "here"}}},
            "which pods",
        ),
    ],
)
def test_a_policy_that_somebody_widened_is_put_right(
    true: Place, name: str, spec: dict[str, Any], words: str
) -> None:
    policy = ("networking.k8s.io/v1", "NetworkPolicy")
    before = true.kubernetes.get(policy, name, true.tenancy.namespace)
    true.kubernetes.patch(policy, name, true.tenancy.namespace, {"spec": spec})
    assert passes(true) == 1
    assert before is not None
    after = true.kubernetes.get(policy, name, true.tenancy.namespace)
    assert after is not None
    assert after["spec"] == before["spec"]
    assert words in one().sentence
    assert one().who == "kubectl-edit"
    assert passes(true) == 0


def test_a_queue_that_somebody_forbade_to_lend_is_put_right(true: Place) -> None:
    group = (true.kubernetes.get(QUEUE, true.tenancy.namespace) or {})["spec"][
        "resourceGroups"
    ]
    group[0]["flavors"][0]["resources"][0]["lendingLimit"] = "0"
    true.kubernetes.patch(
        QUEUE, true.tenancy.namespace, None, {"spec": {"resourceGroups": group}}
    )
    assert passes(true) == 1
    assert one().sentence.endswith("from nothing to 0")
    assert passes(true) == 0
