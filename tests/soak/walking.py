"""Where a random walk takes place: teams on a sandbox cluster and on one that follows Git, with a clock of its own."""

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from django.db import connection
from redis import Redis as Broker

from accounts.models import Membership, Team, User
from accounts.roles import Role
from approvals.policy_desk import actions as policy_actions
from fleet.models import Cluster, Flavor
from notices import enqueue as post
from policy.document import to_json
from policy.models import PolicyVersion
from provisioning import enqueue as tenancies
from provisioning.delivery import client_for
from provisioning.drift import cluster_sweep
from provisioning.git import remotes as git_remotes
from provisioning.models import Tenancy
from provisioning.reconcile import reconcile
from provisioning.stages import Stage
from reconciling import breaker, failpoints
from sandbox.kubernetes.faults import Faults
from tests import factories
from tests.faults.proxy import Proxy
from tests.provisioning.kubernetes import Kubernetes
from tests.remotes import Bare, bare
from tests.scene import NOW
from tests.services import pristine
from tests.soak.near import Near

NEAR, FAR = "near.yaml", "far.yaml"
GIT = "fleet.git"


class Crash(BaseException):
    """The process ends here: nothing of ours catches it, and nothing is tidied up."""


class Nothing(Exception):
    """There is nothing that an operation could be done to now."""


@dataclass
class Place:
    """What all iterations share; each begins with an empty database and the clusters as they were.

    The cluster is called in this thread, and over the network and the fault proxy only where that is the point.
    """

    kubernetes: Kubernetes
    proxy: Proxy
    folder: Path
    broker: Broker
    state: dict[str, Any]
    strangers: dict[str, str] = field(default_factory=dict)
    dead: bool = False
    near: Near = field(init=False)

    def __post_init__(self) -> None:
        server = self.kubernetes
        self.near = Near(server.cluster.app, server.loop, self.check_alive)
        named = (self.folder / self.kubernetes.kubeconfig(self.folder)).read_text()
        (self.folder / NEAR).write_text(named)
        through = named.replace(f":{self.kubernetes.port}", f":{self.proxy.port}")
        (self.folder / FAR).write_text(through)
        self.near.give_to(client_for(Cluster(kubeconfig=NEAR)))

    def check_alive(self) -> None:
        """A process that has ended does nothing more, whatever its code would do on its way out."""
        if self.dead:
            raise Crash

    def anew(self) -> None:
        """Forget everything that an iteration has left."""
        connection.close()
        pristine.restore()
        self.kubernetes.cluster.faults.clear()
        self.kubernetes.restore(self.state)
        self.proxy.faults.clear()
        self.broker.flushdb()
        breaker._pauses.clear()
        cluster_sweep._known.clear()
        git_remotes._repositories.clear()
        shutil.rmtree(self.folder / GIT, ignore_errors=True)
        failpoints.forget()
        self.strangers = self.not_ours()

    @contextmanager
    def by_hand(self) -> Iterator[Kubernetes]:
        """The cluster as an administrator reaches it, whom no fault meets."""
        cluster = self.kubernetes.cluster
        cluster.faults, before = Faults(), cluster.faults
        try:
            yield self.kubernetes
        finally:
            cluster.faults = before

    def not_ours(self) -> dict[str, str]:
        """The version of every object on the cluster that stands in none of our namespaces and is not ours."""
        found = {}
        for item in self.kubernetes.snapshot()["objects"]:
            meta = item["metadata"]
            ours = (meta.get("labels") or {}).get(
                "app.kubernetes.io/managed-by"
            ) == "quartermaster"
            if not ours and not meta.get("namespace", "").startswith("qm-"):
                name = f"{item['kind']} {meta.get('namespace', '')}/{meta['name']}"
                found[name] = meta["resourceVersion"]
        return found


@dataclass
class Town:
    """The people, teams, clusters and kinds of GPU of one iteration; how many there are is drawn."""

    random: Random
    place: Place
    time: datetime = NOW
    cluster: Cluster = field(init=False)
    followed: Cluster = field(init=False)
    theirs: Bare = field(init=False)
    askers: list[User] = field(init=False)
    leads: list[User] = field(init=False)
    boss: User = field(init=False)
    late: list[int] = field(default_factory=list)
    accepted: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place.anew()
        self.cluster = factories.cluster(
            "training", kubeconfig=NEAR, looked_at=NOW, kueue_version="v0.19.0"
        )
        self.theirs = bare(self.place.folder, GIT)
        self.followed = factories.cluster(
            "inference", delivery="git", git_url=str(self.theirs.path), looked_at=NOW
        )
        for name, total in (("a100", 24), ("h100", 16)):
            labels = {"accelerator": f"nvidia-{name}"}
            factories.flavor(self.cluster, name, node_labels=labels, gpus_total=total)
        factories.flavor(self.followed, "l40s", gpus_total=8)
        names = ["Vision", "Speech", "Climate"][: self.random.choice([1, 2, 2, 3])]
        self.askers = [self.team(name) for name in names]
        self.leads = [factories.person("", Role.PLATFORM_LEAD) for _ in range(2)]
        self.boss = factories.person("", Role.ENGINEERING_LEADERSHIP)
        if self.random.random() < 0.6:
            self._settle()

    def _settle(self) -> None:
        """Some walks begin where teams hold GPUs and everything stands, and drift is asked about or put right."""
        if self.random.random() < 0.5:
            Cluster.objects.filter(pk=self.cluster.pk).update(
                on_drift=Cluster.OnDrift.ASK
            )
        for row in Tenancy.objects.select_related("team__created_by").order_by("pk"):
            flavor = self.flavor(row.cluster)
            factories.request(
                row.team.created_by, row, flavor, gpus=2, days=1, now=self.time
            )
            self.work(row.pk)
        if self.random.random() < 0.3:
            self._overtake()

    def _overtake(self) -> None:
        """A draft of a policy waits, and another one was put in force meanwhile."""
        author, other = self.leads
        policy = PolicyVersion.objects.latest("number").policy
        wished = [
            replace(policy, thresholds=replace(policy.thresholds, automatic_days=days))
            for days in (9, 14)
        ]
        drafts = [
            policy_actions.draft(
                by=author, now=self.time, said=to_json(each), why="Less waiting."
            )
            for each in wished
        ]
        policy_actions.activate(
            drafts[0].pk,
            by=other,
            expected_version=drafts[0].version,
            now=self.time,
            everything_automatic=True,
        )

    def team(self, name: str) -> User:
        """A team with its lead, who is returned, wanted on one of the clusters."""
        team = factories.team(name)
        Membership.objects.create(
            team=team, user=team.created_by, part=Membership.Part.LEAD
        )
        cluster = self.followed if self.random.random() < 0.15 else self.cluster
        made = factories.tenancy(team, cluster)
        Tenancy.objects.filter(pk=made.pk).update(
            requeue_at=self.time, changed_at=self.time
        )
        lead: User = team.created_by
        return lead

    def now(self) -> datetime:
        """The time of this iteration."""
        return self.time

    def later(self, **span: float) -> None:
        """Let time go by; what is being deleted on the cluster goes meanwhile."""
        self.time += timedelta(**span)
        self.place.kubernetes.terminate()

    def tenancy(self, *, near: bool = False) -> Tenancy:
        """One of the places; `near` is one on the cluster that the portal writes to."""
        rows = (
            Tenancy.objects.present()
            .select_related("team__created_by", "cluster")
            .order_by("pk")
        )
        found = list(rows.filter(cluster=self.cluster) if near else rows)
        if not found:
            raise Nothing
        return self.random.choice(found)

    def home_of(self, team: Team) -> Tenancy:
        """One of the places where a team works."""
        rows = Tenancy.objects.present().filter(team=team).exclude(stage=Stage.REMOVING)
        found = list(rows.select_related("team", "cluster").order_by("pk"))
        if not found:
            raise Nothing
        return self.random.choice(found)

    def flavor(self, of: Cluster | None = None) -> Flavor:
        """One of the kinds of GPU."""
        rows = Flavor.objects.select_related("cluster").order_by("pk")
        return self.random.choice(list(rows.filter(cluster=of) if of else rows))

    def work(
        self, tenancy_id: int, now: Callable[[], datetime] | None = None
    ) -> int | None:
        """One pass of one worker."""
        return reconcile(tenancy_id, now=now or self.now)

    def messages(self) -> list[int]:
        """Every message that has reached the broker, taken from it: the tenancies that are to be looked at."""
        for queue in (tenancies.queue, post.queue):
            queue.publisher.submit(lambda: None).result()
        found = []
        while raw := self.place.broker.rpop("celery"):
            message = json.loads(
                str(raw, "utf-8") if isinstance(raw, bytes) else str(raw)
            )
            if message["headers"]["task"] == "provisioning.tasks.reconcile_tenancy":
                found += json.loads(base64.b64decode(message["body"]))[0]
        return found
