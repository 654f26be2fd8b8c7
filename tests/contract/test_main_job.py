"""The main job through the portal's own reconcile, on the cluster under test: on board, change, drift, job, leave."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.utils import timezone

from accounts.models import Project
from allocations.changes import refresh
from audit.actors import PORTAL
from connectors.kubernetes import Cluster as Client
from fleet.egress import EgressRule
from fleet.models import Cluster
from provisioning import leaving, reconcile
from provisioning.actions import publish
from provisioning.clusters.access import use_of
from provisioning.delivery import client_for
from provisioning.desired.first_job import NAME as FIRST_JOB
from provisioning.desired.manifests import PRIORITIES, fleet_objects, tenancy_objects
from provisioning.desired.naming import namespace_of
from provisioning.desired.plan import Key, first_difference, is_ours
from provisioning.drift import cluster_sweep
from provisioning.models import Tenancy
from tests import factories
from tests.contract import live
from tests.contract.raw import Raw, eventually

NAMESPACE, QUOTA, POD = ("v1", "Namespace"), ("v1", "ResourceQuota"), ("v1", "Pod")
ACCOUNT = ("v1", "ServiceAccount")
JOB = ("batch/v1", "Job")
KUEUE, GPU = "kueue.x-k8s.io/v1beta2", "nvidia.com/gpu"
QUEUE, LOCAL_QUEUE, WORKLOAD = (
    (KUEUE, "ClusterQueue"),
    (KUEUE, "LocalQueue"),
    (KUEUE, "Workload"),
)
DAY = timedelta(days=1)


@dataclass
class Team:
    """A team of this run on the cluster under test, and an administrator's eye on it."""

    tenancy: Tenancy
    admin: Client
    time: datetime

    @property
    def row(self) -> Tenancy:
        """The tenancy as it is stored now."""
        return Tenancy.objects.get(pk=self.tenancy.pk)

    def pass_over(self) -> int | None:
        """One pass of a worker; returns its writes."""
        return reconcile.reconcile(self.tenancy.pk, now=lambda: self.time)

    def become_true(self) -> int:
        """Passes until everything is true: a namespace that was just made may not be ready for all of it."""
        total = 0

        def done() -> bool:
            nonlocal total
            total += self.pass_over() or 0
            return self.row.is_settled

        eventually(done)
        return total

    def hold(self, gpus: int) -> None:
        """Want so many GPUs, as an approved request would."""
        spec = self.row.desired
        flavors = tuple(replace(flavor, gpus=gpus) for flavor in spec.flavors)
        publish(
            self.row, spec=replace(spec, flavors=flavors), actor=PORTAL, now=self.time
        )

    def missing(self) -> list[str]:
        """What does not stand as wanted, as an administrator sees it."""
        wrong = []
        for manifest in tenancy_objects(self.row.desired):
            key = Key.of(manifest)
            found = self.admin.get(key.ref, key.name, key.namespace or None)
            difference = (
                "is missing" if found is None else first_difference(manifest, found)
            )
            wrong += [f"{key.kind} {key.name} {difference}"] if difference else []
        return wrong

    def versions(self) -> dict[Key, Any]:
        """The fields that managers wrote, and when: what changes with every write and with no status."""
        keys = [Key.of(manifest) for manifest in tenancy_objects(self.row.desired)]
        found = {
            key: self.admin.get(key.ref, key.name, key.namespace or None) or {}
            for key in keys
        }
        return {
            key: [
                m
                for m in live["metadata"].get("managedFields", [])
                if m["manager"] == "quartermaster"
            ]
            for key, live in found.items()
        }

    def gpus(self) -> tuple[int, int]:
        """GPUs that the namespace's quota allows and that the queue guarantees."""
        quota = self.admin.get(QUOTA, "team-quota", self.tenancy.namespace) or {}
        queue = self.admin.get(QUEUE, self.tenancy.namespace) or {}
        flavors = queue["spec"]["resourceGroups"][0]["flavors"]
        nominal = sum(
            int(r["nominalQuota"])
            for f in flavors
            for r in f["resources"]
            if r["name"] == GPU
        )
        return int(quota["spec"]["hard"][f"requests.{GPU}"]), nominal


@pytest.fixture
def team(
    db: None,
    admin: Client,
    provisioner: Client,
    provisioner_config: Path,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Team]:
    """A team that is wanted on the cluster under test; what it had is gone at the end, and so is what it shared.

    The portal works with the rights of its service account, and no more.
    """
    monkeypatch.setattr(settings.ENV, "kubeconfig_dir", provisioner_config.parent)
    cluster = factories.cluster(
        "under-test", kubeconfig=provisioner_config.name, cohort=prefix
    )
    factories.flavor(cluster, f"{prefix}-gpu"[:40], node_labels={}, node_taints=[])
    made = share(provisioner, cluster, prefix)
    team = factories.team(
        prefix.removeprefix("qm-"), entra_group="00000000-0000-4000-9000-00000000ffff"
    )
    place = Tenancy.objects.create(
        # Another installation may be at work on a real cluster: none has a tenancy of this number.
        pk=random.SystemRandom().randrange(10**12, 10**15),
        team=team,
        cluster=cluster,
        environment="dev",
        project=Project.objects.get(team=team),
        namespace=namespace_of(team=team.slug, project="main"),
        requeue_at=timezone.now(),
    )
    assert place.namespace.startswith(live.prefix())
    refresh(place, actor=PORTAL, now=timezone.now())
    cluster_sweep.forget(cluster.pk)
    yield Team(Tenancy.objects.get(pk=place.pk), admin, timezone.now())
    client_for(cluster).close()
    admin.delete(NAMESPACE, place.namespace)
    admin.delete(QUEUE, place.namespace)
    eventually(lambda: admin.get(QUEUE, place.namespace) is None)
    for key in made:
        admin.delete(key.ref, key.name)


@pytest.fixture
def member(raw: Raw, team: Team) -> Raw:
    """A member of the team's Entra group."""
    return raw.acting_as("member@example.com", team.row.desired.entra_group)


def share(portal: Client, cluster: Cluster, prefix: str) -> list[Key]:
    """Put what tenancies share there, but nothing over what stands: another installation's stays as it is."""
    flavors = [
        (flavor.name, flavor.node_labels, flavor.node_taints)
        for flavor in cluster.flavors.all()
    ]
    made = []
    for manifest in fleet_objects(cohort=cluster.cohort, flavors=flavors):
        key = Key.of(manifest)
        found = portal.get(key.ref, key.name)
        if found is None:
            if not key.name.startswith(prefix):
                live.note(key.kind, key.name)
            portal.apply(manifest)
            made.append(key)
        elif not is_ours(found):
            pytest.skip(f"{key.kind} {key.name} stands there and is somebody else's")
    return made


def test_a_team_comes_on_board_and_a_second_pass_writes_nothing(team: Team) -> None:
    assert team.become_true() >= len(tenancy_objects(team.row.desired))
    assert team.missing() == []
    assert team.gpus() == (0, 0)
    before = team.versions()
    assert team.pass_over() == 0
    assert team.versions() == before


@pytest.mark.slow
def test_what_is_granted_and_given_back_stands_in_quota_and_queue(team: Team) -> None:
    team.become_true()
    for gpus in (2, 1, 0):
        team.hold(gpus)
        assert team.become_true() >= 2
        assert team.gpus() == (gpus, gpus)
        assert team.pass_over() == 0


def test_drift_is_repaired_and_only_drift(team: Team, raw: Raw) -> None:
    team.become_true()
    namespace = team.tenancy.namespace
    body = {"spec": {"hard": {"pods": "1"}}}
    status, _ = raw.send(
        "PATCH",
        f"/api/v1/namespaces/{namespace}/resourcequotas/team-quota",
        body,
        query={"fieldManager": "kubectl-edit"},
        content_type="application/merge-patch+json",
    )
    assert status == 200
    team.admin.delete(LOCAL_QUEUE, "default", namespace)
    eventually(lambda: team.admin.get(LOCAL_QUEUE, "default", namespace) is None)
    assert team.pass_over() == 2
    assert team.missing() == []
    assert team.pass_over() == 0


def test_everything_settled_is_looked_at_together_and_drift_is_found_there(
    team: Team,
) -> None:
    team.become_true()
    team.time += timedelta(minutes=1)
    cluster = team.tenancy.cluster_id
    assert list(cluster_sweep.sweep(cluster, now=lambda: team.time)) == []
    assert team.row.last_looked_at == team.time
    team.admin.delete(QUOTA, "team-quota", team.tenancy.namespace)
    team.time += timedelta(minutes=1)
    assert list(cluster_sweep.sweep(cluster, now=lambda: team.time)) == [
        team.tenancy.pk
    ]
    assert team.pass_over() == 1


def test_a_job_within_the_quota_is_admitted_and_one_beyond_it_waits_for_its_end(
    team: Team,
) -> None:
    team.hold(1)
    take_jobs(team)
    namespace = team.tenancy.namespace
    team.admin.create(job(namespace, "first", gpus=1))
    eventually(lambda: admitted(team.admin, namespace) == {"first": True})
    eventually(lambda: status_of(team, "first").get("active") == 1)
    team.admin.create(job(namespace, "second", gpus=1))
    eventually(lambda: "1 more needed" in why(team.admin, namespace, "second"))
    assert admitted(team.admin, namespace) == {"first": True, "second": False}
    team.admin.delete(JOB, "first", namespace, propagation="Background")
    eventually(lambda: admitted(team.admin, namespace) == {"second": True})


def test_a_job_that_asks_for_more_than_there_ever_is_is_told_so(team: Team) -> None:
    team.hold(1)
    take_jobs(team)
    namespace = team.tenancy.namespace
    team.admin.create(job(namespace, "large", gpus=1000))
    eventually(
        lambda: (
            "couldn't assign flavors to pod set main"
            in why(team.admin, namespace, "large")
        )
    )
    assert "> maximum capacity" in why(team.admin, namespace, "large")


def test_a_job_runs_to_its_end_and_gives_its_room_back(team: Team) -> None:
    take_jobs(team)
    namespace = team.tenancy.namespace
    team.admin.create(
        job(
            namespace,
            "short",
            gpus=0,
            image="registry.k8s.io/e2e-test-images/busybox:1.36.1-1",
            command=["sleep", "1"],
        )
    )
    try:
        eventually(lambda: bool(status_of(team, "short").get("succeeded")), seconds=90)
    except AssertionError:
        pods = team.admin.list(POD, namespace, label_selector="job-name=short")
        pytest.skip(
            f"its pod does not end here: {'; '.join(map(trouble, pods)) or 'there is none'}"
        )
    eventually(
        lambda: (
            (team.admin.get(QUEUE, namespace) or {})["status"]["admittedWorkloads"] == 0
        )
    )


def test_the_first_job_is_pasted_unchanged_by_a_member_and_finishes(
    team: Team, member: Raw
) -> None:
    team.hold(1)
    take_jobs(team)
    namespace = team.tenancy.namespace
    pasted = yaml.safe_load(use_of(team.row).job)
    assert (
        pasted["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][GPU]
        == "1"
    )
    status, made = member.send(
        "POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", pasted
    )
    assert status == 201, made
    try:
        eventually(
            lambda: bool(status_of(team, FIRST_JOB).get("succeeded")), seconds=90
        )
    except AssertionError:
        pods = team.admin.list(POD, namespace, label_selector=f"job-name={FIRST_JOB}")
        assert live.kubeconfig() is not None, f"{pods} {status_of(team, FIRST_JOB)}"
        pytest.skip(
            f"its pod does not end here: {'; '.join(map(trouble, pods)) or 'there is none'}"
        )


def test_no_priority_of_a_member_comes_before_what_others_were_granted(
    team: Team, member: Raw
) -> None:
    team.become_true()
    namespace = team.tenancy.namespace
    for name in (
        "production-inference",
        "system-cluster-critical",
        "system-node-critical",
    ):
        status, said = member.send(
            "POST", f"/api/v1/namespaces/{namespace}/pods", pod(name, name)
        )
        assert status == 403, said
        words = (
            "exceeded quota: team-priorities, requested: pods=1"
            if name in PRIORITIES
            else "denied request"
        )
        assert words in said["message"]
    for name in ("scheduled-training", "exploratory", "best-effort"):
        status, made = member.send(
            "POST", f"/api/v1/namespaces/{namespace}/pods", pod(name, name)
        )
        assert status == 201, made
        assert made["spec"]["preemptionPolicy"] == "Never"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("account", "asks", "gets"),
    [
        ({}, {}, False),
        ({}, {"automountServiceAccountToken": True}, True),
        ({"serviceAccountName": "workload"}, {}, False),
        (
            {"serviceAccountName": "workload"},
            {"automountServiceAccountToken": True},
            True,
        ),
    ],
    ids=["no account", "no account, asks", "workload", "workload, asks"],
)
def test_a_members_job_gets_a_token_when_it_asks_for_one_and_never_else(
    team: Team, member: Raw, account: dict[str, Any], asks: dict[str, Any], gets: bool
) -> None:
    take_jobs(team)
    namespace = team.tenancy.namespace
    wanted = job(namespace, "token", gpus=0)
    spec = wanted["spec"]["template"]["spec"]
    del spec["automountServiceAccountToken"]
    spec |= account | asks
    status, made = member.send(
        "POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", wanted
    )
    assert status == 201, made
    eventually(
        lambda: bool(team.admin.list(POD, namespace, label_selector="job-name=token"))
    )
    [found] = team.admin.list(POD, namespace, label_selector="job-name=token")
    assert found["spec"]["serviceAccountName"] == account.get(
        "serviceAccountName", "default"
    )
    mounted = [
        source
        for volume in found["spec"].get("volumes", [])
        for source in volume["projected"]["sources"]
    ]
    assert any("serviceAccountToken" in source for source in mounted) is gets


def test_the_account_that_kubernetes_makes_is_adopted_again_when_it_was_made_anew(
    team: Team,
) -> None:
    team.become_true()
    namespace, made = (
        team.tenancy.namespace,
        team.admin.get(ACCOUNT, "default", team.tenancy.namespace) or {},
    )
    assert is_ours(made)
    team.admin.delete(ACCOUNT, "default", namespace)

    def is_another() -> bool:
        found = team.admin.get(ACCOUNT, "default", namespace)
        return found is not None and found["metadata"]["uid"] != made["metadata"]["uid"]

    eventually(is_another)
    assert team.pass_over() == 1
    assert team.missing() == []
    assert team.pass_over() == 0


def test_ways_out_by_name_stand_where_the_network_is_cilium(
    team: Team, admin: Client
) -> None:
    if not admin.served_versions("cilium.io"):
        pytest.skip("the network of this cluster is not Cilium")
    hub = EgressRule(name="hub", names=("huggingface.co", "*.huggingface.co"))
    publish(
        team.row,
        spec=replace(team.row.desired, egress=(hub,), by_name=True),
        actor=PORTAL,
        now=team.time,
    )
    team.become_true()
    assert team.missing() == []
    assert team.pass_over() == 0
    publish(
        team.row, spec=replace(team.row.desired, egress=()), actor=PORTAL, now=team.time
    )
    team.become_true()
    assert (
        admin.get(
            ("cilium.io/v2", "CiliumNetworkPolicy"),
            "allow-outside-names",
            team.tenancy.namespace,
        )
        is None
    )


def test_a_job_of_a_closed_priority_gets_no_pod_until_a_lead_opens_it(
    team: Team,
) -> None:
    take_jobs(team)
    namespace = team.tenancy.namespace
    wanted = job(namespace, "urgent", gpus=0)
    wanted["spec"]["template"]["spec"]["priorityClassName"] = "production-inference"
    team.admin.create(wanted)

    def refused() -> bool:
        said = [one["message"] for one in team.admin.list(("v1", "Event"), namespace)]
        return any("exceeded quota: team-priorities" in message for message in said)

    eventually(refused)
    assert team.admin.list(POD, namespace, label_selector="job-name=urgent") == []
    publish(
        team.row,
        spec=replace(team.row.desired, highest_priority="production-inference"),
        actor=PORTAL,
        now=team.time,
    )
    team.become_true()
    team.admin.create(wanted | {"metadata": wanted["metadata"] | {"name": "again"}})
    eventually(
        lambda: bool(team.admin.list(POD, namespace, label_selector="job-name=again"))
    )


@pytest.mark.slow
def test_a_team_leaves_and_nothing_of_it_stays(team: Team) -> None:
    take_jobs(team)
    namespace = team.tenancy.namespace
    team.admin.create(job(namespace, "last", gpus=0))
    eventually(lambda: admitted(team.admin, namespace) == {"last": True})
    Tenancy.objects.filter(pk=team.tenancy.pk).update(is_protected=False)
    pk, now = team.tenancy.pk, team.time
    leaving.announce(pk, leaves_at=now, hold=False, actor=PORTAL, now=now)
    team.become_true()
    assert admitted(team.admin, namespace) == {"last": True}
    assert leaving.drain(pk, retained_until=now + DAY, actor=PORTAL, now=now)
    team.become_true()
    eventually(lambda: admitted(team.admin, namespace) == {"last": False})
    assert team.admin.get(NAMESPACE, team.tenancy.namespace) is not None
    team.time += 2 * DAY
    assert leaving.remove(pk, actor=PORTAL, now=team.time)

    def is_gone() -> bool:
        team.pass_over()
        team.time += timedelta(seconds=10)
        return team.row.stage == "gone"

    eventually(is_gone, seconds=90)
    assert team.admin.get(NAMESPACE, team.tenancy.namespace) is None
    assert team.admin.get(QUEUE, team.tenancy.namespace) is None


def take_jobs(team: Team) -> None:
    """Make the team's place true, and wait until its queue takes jobs; skips where nothing answers for Kueue."""
    team.become_true()
    try:
        eventually(
            lambda: (
                condition(team.admin.get(QUEUE, team.tenancy.namespace), "Active")
                == "True"
            ),
            seconds=20,
        )
    except AssertionError:
        pytest.skip(
            "Kueue's controller does not answer: the queue is not active after 20 s"
        )


def job(
    namespace: str,
    name: str,
    *,
    gpus: int,
    image: str = "registry.k8s.io/pause:3.10",
    command: list[str] | None = None,
) -> dict[str, Any]:
    """A job as a team hands it in; one without a command runs until it is stopped."""
    amounts = {"cpu": "100m", "memory": "64Mi", **({GPU: str(gpus)} if gpus else {})}
    container = {
        "name": "train",
        "image": image,
        "resources": {"requests": amounts, "limits": amounts},
        **({"command": command} if command else {}),
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "default"},
        },
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def pod(name: str, priority: str) -> dict[str, Any]:
    """A pod that a member makes by hand."""
    amounts = {"cpu": "100m", "memory": "64Mi"}
    container = {
        "name": "it",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": amounts, "limits": amounts},
    }
    spec = {
        "automountServiceAccountToken": False,
        "priorityClassName": priority,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def status_of(team: Team, name: str) -> dict[str, Any]:
    """The status of a job."""
    found = team.admin.get(JOB, name, team.tenancy.namespace) or {}
    return dict(found.get("status") or {})


def why(admin: Client, namespace: str, name: str) -> str:
    """What Kueue says of a job that waits."""
    found = [one for one in admin.list(WORKLOAD, namespace) if owner(one) == name]
    conditions = (
        found[0]["status"].get("conditions") or []
        if found and found[0].get("status")
        else []
    )
    return next(
        (str(c["message"]) for c in conditions if c["type"] == "QuotaReserved"), ""
    )


def owner(workload: dict[str, Any]) -> str:
    """The name of a workload's job."""
    return str(workload["metadata"]["ownerReferences"][0]["name"])


def trouble(pod: dict[str, Any]) -> str:
    """What keeps a pod: what its container waits for, or the first condition that does not hold."""
    status = pod.get("status") or {}
    waiting = [
        one["state"].get("waiting") or {}
        for one in status.get("containerStatuses") or ()
    ]
    said = [one.get("reason") for one in waiting]
    said += [
        c.get("reason")
        for c in status.get("conditions") or ()
        if c["status"] == "False"
    ]
    return next((str(reason) for reason in said if reason), str(status.get("phase")))


def admitted(admin: Client, namespace: str) -> dict[str, bool]:
    """Whether each job's workload is admitted."""
    return {
        owner(found): condition(found, "Admitted") == "True"
        for found in admin.list(WORKLOAD, namespace)
    }


def condition(found: dict[str, Any] | None, kind: str) -> str:
    """The status of a condition; empty when there is none."""
    conditions = ((found or {}).get("status") or {}).get("conditions") or []
    return next((str(c["status"]) for c in conditions if c["type"] == kind), "")
