"""Which work on clusters the portal started itself, as a run or a notebook, and what its people call it."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from django.urls import reverse

from notebooks.models import NotebookServer
from notebooks.servers.missing_secrets import MAKE_IT
from provisioning.models import Tenancy
from workloads.explanations import Explanation
from workloads.models import Run
from workloads.observed import JobKey
from workloads.reasons.containers import VALUE_NOT_THERE

# Cluster, namespace and name of a job there.
Place = tuple[str, str, str]
POD = "Pod"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnWork:
    """A run or a notebook of the portal: its name as people gave it, and its number among its like.

    `limit` is how long the run may be active each time it begins; None where it has no time limit.
    """

    title: str
    run: int | None = None
    notebook: int | None = None
    limit: timedelta | None = None

    def explained(self, why: Explanation) -> Explanation:
        """Why it does not run, with what helps a notebook where it is one."""
        return why if self.notebook is None else of_notebook(why)


def of_notebook(why: Explanation) -> Explanation:
    """What to do for a notebook where that is something else than for a run, which waits for its Secrets for ever."""
    if why.code != VALUE_NOT_THERE:
        return why
    return replace(why, do=MAKE_IT, step=None)


def own_work_in(
    tenancies: Collection[Tenancy], keys: Mapping[str, Collection[JobKey]]
) -> dict[Place, OwnWork]:
    """What the portal started of the jobs with these keys, by cluster, in these namespaces.

    In one query, and a second one where there are pods that no job made. The tenancies come with their clusters.
    """
    names = {one.name for those in keys.values() for one in those if one.kind != POD}
    rows = Run.objects.filter(tenancy__in=tenancies, name__in=names)
    found = {
        (cluster, namespace, name): OwnWork(
            title=title,
            run=pk,
            limit=None if seconds is None else timedelta(seconds=seconds),
        )
        for cluster, namespace, name, title, pk, seconds in rows.values_list(
            "tenancy__cluster__name",
            "tenancy__namespace",
            "name",
            "title",
            "pk",
            "limit_seconds",
        )
    }
    return found | _notebooks(tenancies, keys)


def own_link(*, run: int | None, notebook: int | None) -> str:
    """The page of a run or a notebook, which whoever sees its team may look at; empty for any other work."""
    if run is not None:
        return reverse("run", args=[run])
    return reverse("notebook", args=[notebook]) if notebook is not None else ""


def _notebooks(
    tenancies: Collection[Tenancy], keys: Mapping[str, Collection[JobKey]]
) -> dict[Place, OwnWork]:
    pods = defaultdict[tuple[str, str], set[str]](set)
    for cluster, those in keys.items():
        for one in those:
            if one.kind == POD:
                pods[cluster, one.namespace].add(one.name)
    here = {one.pk: (one.cluster.name, one.namespace) for one in tenancies}
    with_pods = [pk for pk, place in here.items() if place in pods]
    if not with_pods:
        return {}
    return {
        (*here[server.tenancy_id], name): OwnWork(
            title=server.title, notebook=server.pk
        )
        for server in NotebookServer.objects.live().filter(tenancy__in=with_pods)
        for name in pods[here[server.tenancy_id]]
        if server.is_pod(name)
    }
