"""What the portal's own account may do on the cluster under test: what it does, and nothing to what others made."""

from collections.abc import Iterator
from typing import Any

import pytest

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster, Ref
from provisioning.desired.manifests import KUEUE
from tests.contract.raw import eventually
from tests.contract.test_guards import space

__all__ = ["space"]

OURS = {"app.kubernetes.io/managed-by": "quartermaster"}
NAMESPACE: Ref = ("v1", "Namespace")
QUEUE, COHORT = (KUEUE, "ClusterQueue"), (KUEUE, "Cohort")


@pytest.fixture
def theirs(admin: Cluster, prefix: str) -> Iterator[str]:
    """A namespace, a queue and a cohort of somebody else."""
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": prefix}})
    for ref in (QUEUE, COHORT):
        admin.apply(
            {"apiVersion": ref[0], "kind": ref[1], "metadata": {"name": prefix}}
        )
    yield prefix
    for ref in (NAMESPACE, QUEUE, COHORT):
        admin.delete(ref, prefix)


def refused(attempt: Any) -> str:
    with pytest.raises(PermanentError) as caught:
        attempt()
    assert caught.value.code == "forbidden", caught.value.message
    return caught.value.message


def marked(ref: Ref, name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": ref[0],
        "kind": ref[1],
        "metadata": {"name": name, "labels": OURS, **metadata},
    }


@pytest.mark.parametrize("name", ["kube-system", "kueue-system", "default"])
def test_it_neither_labels_nor_deletes_a_namespace_of_others(
    provisioner: Cluster, name: str
) -> None:
    unsafe = {
        "metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
    }
    assert "writes only objects with the label" in refused(
        lambda: provisioner.merge(NAMESPACE, name, None, unsafe)
    )
    taken = {"metadata": {"labels": OURS}}
    assert "denied request" in refused(
        lambda: provisioner.merge(NAMESPACE, name, None, taken)
    )
    refused(lambda: provisioner.delete(NAMESPACE, name))


def test_it_makes_no_namespace_and_no_queue_of_another_name(
    provisioner: Cluster,
) -> None:
    for ref in (NAMESPACE, QUEUE):
        assert "begin with qm-" in refused(
            lambda ref=ref: provisioner.apply(marked(ref, "theirs"), dry_run=True)
        )


def test_it_leaves_queues_and_cohorts_of_others_alone(
    provisioner: Cluster, theirs: str
) -> None:
    for ref in (QUEUE, COHORT):
        refused(
            lambda ref=ref: provisioner.merge(
                ref, theirs, None, {"metadata": {"labels": OURS}}
            )
        )
        refused(lambda ref=ref: provisioner.delete(ref, theirs))


@pytest.mark.parametrize("namespace", ["kube-system", "default"])
def test_it_binds_and_limits_nobody_outside_of_teams_namespaces(
    provisioner: Cluster, namespace: str
) -> None:
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "quartermaster-team-user",
    }
    binding = marked(
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        "team-users",
        namespace=namespace,
    )
    quota = marked(("v1", "ResourceQuota"), "team-quota", namespace=namespace)
    for manifest in (
        {**binding, "roleRef": role, "subjects": []},
        {**quota, "spec": {"hard": {"pods": "0"}}},
    ):
        said = refused(
            lambda manifest=manifest: provisioner.apply(manifest, dry_run=True)
        )
        assert "into teams' namespaces alone" in said


def test_it_adopts_the_account_that_kubernetes_makes_and_no_other(
    admin: Cluster, provisioner: Cluster, prefix: str
) -> None:
    # Namespaces of the portal's begin like this, and the run's own prefix does, too.
    assert prefix.startswith("qm-")
    admin.apply(
        marked(NAMESPACE, prefix, labels=OURS | {"quartermaster.io/tenancy": "1"})
    )
    account: Ref = ("v1", "ServiceAccount")
    try:
        eventually(lambda: admin.get(account, "default", prefix) is not None)
        assert (
            provisioner.apply(marked(account, "default", namespace=prefix))["metadata"][
                "labels"
            ]
            == OURS
        )
        admin.create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "workload", "namespace": prefix},
            }
        )
        said = refused(
            lambda: provisioner.apply(marked(account, "workload", namespace=prefix))
        )
        assert "writes only objects with the label" in said
        helm = {"app.kubernetes.io/managed-by": "Helm"}
        admin.merge(account, "default", prefix, {"metadata": {"labels": helm}})
        refused(lambda: provisioner.apply(marked(account, "default", namespace=prefix)))
    finally:
        admin.delete(NAMESPACE, prefix)


def test_it_reads_the_dashboards_it_makes_and_no_other_config_map(
    provisioner: Cluster,
) -> None:
    config_map: Ref = ("v1", "ConfigMap")
    assert isinstance(
        provisioner.list(config_map, name="quartermaster-dashboard"), list
    )
    refused(lambda: provisioner.list(config_map))
    refused(lambda: provisioner.get(config_map, "kube-root-ca.crt", "kube-system"))


def test_it_gives_a_run_another_time_limit_and_changes_nothing_else_of_work(
    provisioner: Cluster, admin: Cluster, space: str
) -> None:
    job: Ref = ("batch/v1", "Job")
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    spec = {"restartPolicy": "Never", "containers": [container]}
    for name, labels in (("run", {"quartermaster.io/run": "run"}), ("other", {})):
        template = {"metadata": {"labels": labels}, "spec": spec}
        admin.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": space},
                "spec": {"suspend": True, "template": template},
            }
        )
    longer = {"spec": {"activeDeadlineSeconds": 7_200}}
    # The binding of a namespace that was made just now is in force a moment later.
    eventually(lambda: provisioner.can_i("patch", job, space))
    provisioner.merge(job, "run", space, longer)
    found = admin.get(job, "run", space)
    assert found is not None
    assert found["spec"]["activeDeadlineSeconds"] == 7_200
    assert "changes the time limits of its runs alone" in refused(
        lambda: provisioner.merge(job, "other", space, longer)
    )
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "0"}
    for change in (
        {"spec": {"suspend": False}},
        {"spec": {"parallelism": 9}},
        {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}},
        {"metadata": {"ownerReferences": [owner]}},
    ):
        assert "changes only how long a run may go on" in refused(
            lambda change=change: provisioner.merge(job, "run", space, change)
        )


@pytest.mark.parametrize(
    "verb", ["watch", "update", "deletecollection", "impersonate", "escalate"]
)
def test_it_holds_no_verb_that_it_does_not_use(provisioner: Cluster, verb: str) -> None:
    refs = [
        NAMESPACE,
        QUEUE,
        COHORT,
        ("v1", "Pod"),
        ("v1", "Event"),
        ("v1", "ResourceQuota"),
        (KUEUE, "Workload"),
    ]
    # What runs is watched (docs/adr/0015), and nothing else is.
    used = (
        [QUEUE, ("v1", "Pod"), ("v1", "Event"), (KUEUE, "Workload")]
        if verb == "watch"
        else []
    )
    assert [ref for ref in refs if provisioner.can_i(verb, ref)] == used
