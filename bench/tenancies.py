"""Tenancies on a sandbox cluster of the run's own, and the floor beside them: bare HTTP with the same objects."""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import urllib3
import yaml
from django.conf import settings
from django.utils import timezone

from accounts.models import Project, Team, User
from allocations.desired_state import desired
from allocations.places import in_queue, place_of
from bench import rig, seed
from bench.standing import BATCH, write
from connectors.kubernetes import PAGE, path, ref_of
from fleet.models import Cluster, Flavor
from provisioning import reconcile
from provisioning.desired.manifests import TENANCY_LABEL, Manifest, tenancy_objects
from provisioning.desired.naming import namespace_of
from provisioning.desired.spec import TenancySpec
from provisioning.models import Tenancy
from tests.faults.world import World, served

NAME = "bench"
# Budgets are for clusters that others use too; here it is the machine that sets the pace.
WRITES_PER_SECOND, AT_ONCE = 30_000, 64


@dataclass
class Bare:
    """Plain HTTPS with the account of a kubeconfig, one call after another on one connection."""

    server: str
    headers: Mapping[str, str]
    pool: urllib3.PoolManager

    def apply(self, manifest: Manifest, *, manager: str = "bare") -> None:
        """Server-side apply; raises RuntimeError when it is refused."""
        where = path(
            ref_of(manifest),
            manifest["metadata"].get("namespace"),
            manifest["metadata"]["name"],
        )
        query = urlencode({"fieldManager": manager, "force": "true"})
        self._send(
            "PATCH",
            f"{where}?{query}",
            json.dumps(manifest).encode(),
            "application/apply-patch+yaml",
        )

    def merge(
        self, ref: tuple[str, str], namespace: str, name: str, body: Mapping[str, Any]
    ) -> None:
        """Change an object by hand, as another field manager."""
        where = f"{path(ref, namespace, name)}?fieldManager=kubectl-edit"
        self._send(
            "PATCH", where, json.dumps(body).encode(), "application/merge-patch+json"
        )

    def version(self) -> None:
        """Ask for the server's version, so that the connection stands."""
        self._send("GET", "/version")

    def every(self, ref: tuple[str, str]) -> Iterator[Manifest]:
        """All objects of a kind with our label, in pages as large as the portal's."""
        query = {"labelSelector": TENANCY_LABEL, "limit": str(PAGE)}
        while True:
            page = self._send("GET", f"{path(ref)}?{urlencode(query)}")
            yield from page["items"]
            if not (following := page["metadata"].get("continue")):
                return
            query["continue"] = following

    def _send(
        self, method: str, where: str, body: bytes | None = None, kind: str = ""
    ) -> dict[str, Any]:
        headers = {**self.headers, "Content-Type": kind} if kind else self.headers
        answer = self.pool.request(
            method, self.server + where, body=body, headers=headers
        )
        if answer.status >= 400:
            raise RuntimeError(
                f"{method} {where}: {answer.status} {answer.data[:300]!r}"
            )
        found: dict[str, Any] = json.loads(answer.data)
        return found


@dataclass
class Ground:
    """A prepared cluster of the portal, and the way around it.

    `bare` has the portal's own account: an administrator's writes pass by the admission policies that the API server
    holds against the portal's.
    """

    world: World
    cluster: Cluster
    bare: Bare
    administrator: Bare
    lead: User
    standing: Sequence[Tenancy]

    def wanted(self, count: int, *, now: datetime) -> list[Tenancy]:
        """So many teams with a place on the cluster, desired and not there yet."""
        return wanted_on(self.cluster, self.lead, count, now=now)

    def provision(self, tenancies: Iterable[Tenancy], *, now: datetime) -> float:
        """Make them true as a worker does; seconds. Raises RuntimeError when one is not."""
        began = time.perf_counter()
        for tenancy in tenancies:
            while (writes := reconcile.reconcile(tenancy.pk, now=lambda: now)) is None:
                continue  # others took every place that was seen free: a worker comes by again, too
            if not writes:
                raise RuntimeError(
                    f"{tenancy} was not written: {Tenancy.objects.get(pk=tenancy.pk).ready}"
                )
        return time.perf_counter() - began

    def provision_bare(self, objects: Iterable[Sequence[Manifest]]) -> float:
        """The bare loop over the objects of such tenancies; seconds."""
        began = time.perf_counter()
        for each in objects:
            for manifest in each:
                self.bare.apply(manifest)
        return time.perf_counter() - began

    def of_this_process(self) -> "Ground":
        """The same with a connection that no other process has."""
        return replace(self, bare=_bare(_own_kubeconfig(self.world), self.world))

    def same(self, tenancies: Iterable[Tenancy]) -> list[list[Manifest]]:
        """The objects of these tenancies."""
        return [tenancy_objects(tenancy.desired) for tenancy in tenancies]

    def twins(self, tenancies: Iterable[Tenancy], mark: str) -> list[list[Manifest]]:
        """The same objects under other names, that no portal knows."""
        return [tenancy_objects(_twin(tenancy.desired, mark)) for tenancy in tenancies]


@contextmanager
def ground(on: rig.Rig, *, standing: int = 0) -> Iterator[Ground]:
    """A sandbox cluster in a process of its own, on which so many tenancies stand already, until the block ends."""
    now, folder = timezone.now(), on.folder / "world"
    # What stood on the cluster of an earlier benchmark is nobody's here.
    shutil.rmtree(folder, ignore_errors=True)
    cluster, lead = cluster_of(NAME, kubeconfig=f"kubeconfig-{NAME}.yaml"), somebody()
    there = wanted_on(cluster, lead, standing, now=now) if standing else []
    if there:
        write(folder, NAME, there, now=now)
    with served(NAME, folder, forget=True) as world:
        settings.ENV.kubeconfig_dir = world.folder
        administrators = Path(world.described()["admin_kubeconfig"])
        both = _bare(_own_kubeconfig(world), world), _bare(administrators, world)
        yield Ground(world, cluster, *both, lead, there)
        for each in both:
            each.pool.clear()


def cluster_of(name: str, **fields: Any) -> Cluster:
    """A cluster with one flavor, whose budgets are out of the way."""
    made = Cluster.objects.create(
        name=name,
        title=name.capitalize(),
        region="eastus",
        purpose=Cluster.Purpose.TRAINING,
        reachable=True,
        writes_per_second=WRITES_PER_SECOND,
        most_at_once=AT_ONCE,
        **fields,
    )
    Flavor.objects.create(
        cluster=made,
        name="a100-80gb",
        product="A100",
        memory_gb=80,
        gpus_per_node=8,
        price_per_gpu_hour=seed.PRICE,
        gpus_total=24,
        gpus_seen_at=timezone.now(),
        node_labels={"accelerator": "nvidia-a100"},
    )
    return made


def somebody() -> User:
    """Who made the teams."""
    return User.objects.create(
        tid=seed.TENANT, oid=UUID(int=1), name="Priya Raman", username="priya"
    )


def wanted_on(
    cluster: Cluster, lead: User, count: int, *, now: datetime
) -> list[Tenancy]:
    """Tenancies of new teams as their coming on board leaves them, in bulk."""
    first = Team.objects.count()
    teams = Team.objects.bulk_create(
        _team(first + number, lead) for number in range(count)
    )
    projects = Project.objects.bulk_create(
        Project(team=team, slug="main") for team in teams
    )
    made = Tenancy.objects.bulk_create(
        Tenancy(
            team=project.team,
            cluster=cluster,
            project=project,
            environment="dev",
            generation=1,
            changed_at=now,
            namespace=namespace_of(team=project.team.slug, project=project.slug),
            requeue_at=now,
        )
        for project in projects
    )
    kinds = [each.kind for each in in_queue(made[0])]
    for tenancy in made:
        tenancy.spec = desired(place_of(tenancy), kinds=kinds, held={}).to_json()
    Tenancy.objects.bulk_update(made, ["spec"], batch_size=BATCH)
    return made


def _own_kubeconfig(world: World) -> Path:
    return world.folder / f"kubeconfig-{NAME}.yaml"


def _bare(kubeconfig: Path, world: World) -> Bare:
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}", "Accept": "application/json"}
    pool = urllib3.PoolManager(ca_certs=str(world.folder / "ca.pem"), retries=False)
    return Bare(world.described()["server"], headers, pool)


def _twin(spec: TenancySpec, mark: str) -> TenancySpec:
    """The same desired state of another team, whose name is as long or longer."""
    team = f"{mark}-{spec.team}"
    place = namespace_of(team=team, project=spec.project)
    return replace(spec, tenancy=spec.tenancy + 10**9, team=team, namespace=place)


def _team(number: int, lead: User) -> Team:
    slug = f"team-{number}"
    return Team(
        name=f"Team {number}",
        slug=slug,
        entra_group=UUID(int=number + 1),
        entra_group_name=slug,
        cost_centre=f"CC-{number}",
        created_by=lead,
    )
