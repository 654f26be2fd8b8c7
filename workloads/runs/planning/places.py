"""Where a person's runs may go: their teams' namespaces, with what each holds there and what its cluster can run."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.conf import settings
from django.db.models import Exists, OuterRef

from accounts.models import User
from allocations.models import Allocation
from fleet.models import Cluster, Flavor
from fleet.versions.comparing import lowest
from fleet.versions.reading import Component
from provisioning.desired.first_job import Kind
from provisioning.desired.first_job import queue_of as queue_name
from provisioning.desired.limits import room
from provisioning.desired.quantities import CPU, MEMORY
from provisioning.desired.spec import GPU
from provisioning.desired.volumes import DATASETS, claim_name
from provisioning.models import Tenancy
from provisioning.stages import Stage
from workloads.models import ClusterObject
from workloads.reading.queues import queue_of, sizes_lent_by
from workloads.runs.models import ClusterAbility
from workloads.runs.planning.lending import Cell, Lender, lent_to
from workloads.runs.planning.plan import Place
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.sizes import rooms_of
from workloads.template_desk.offered import offered
from workloads.templates.library import TEMPLATES, Abilities, Template
from workloads.templates.run import Where

# What every cluster with Kueue runs, said of one that nobody has asked yet.
ALWAYS = frozenset(one.kind for one in TEMPLATES if one.kind.startswith("Job.batch/"))
HOSTNAME = "kubernetes.io/hostname"
WITH_ACCESS = frozenset({Stage.HERE, Stage.LEAVING})


def open_to(user: User) -> list[Tenancy]:
    """The namespaces that this person may start runs in, with their clusters: those of own teams that stand."""
    rows = Tenancy.objects.here().of_member(user).filter(observed_generation__gte=1)
    return list(
        rows.select_related("team", "project", "cluster__ability").order_by(
            "team__name", "cluster__title", "namespace"
        )
    )


def place_of(tenancy: Tenancy, *, by: User, with_lent: bool = True) -> Place:
    """What planning has to know of a namespace. `tenancy` comes with team, project and cluster__ability.

    Without what others lend it takes two queries less, and nothing can be borrowed.
    """
    return places_of([tenancy], by=by, with_lent=with_lent)[0]


def places_of(
    tenancies: Sequence[Tenancy], *, by: User, with_lent: bool = True
) -> list[Place]:
    """The same of several, in their order; four queries however many they are."""
    clusters = {one.cluster_id for one in tenancies}
    flavors = {
        (one.cluster_id, one.name): one
        for one in Flavor.objects.filter(cluster__in=clusters)
    }
    lenders, templates = _lenders(clusters) if with_lent else {}, offered()
    return [
        _place(
            one,
            {
                name: flavor
                for (cluster, name), flavor in flavors.items()
                if cluster == one.cluster_id
            },
            lenders.get(one.cluster_id, ()),
            by,
            templates,
        )
        for one in tenancies
    ]


def pools_of(tenancy: Tenancy, flavors: Mapping[str, Flavor]) -> Mapping[str, Pool]:
    """The GPUs that a namespace has of each of its cluster's flavors, with what can be borrowed; in two queries."""
    return _pools(
        tenancy, flavors, _lenders([tenancy.cluster_id]).get(tenancy.cluster_id, ())
    )


def kinds_of(tenancy: Tenancy) -> tuple[Mapping[str, Pool], Mapping[str, Pool]]:
    """The GPUs that a namespace has, and those that its team may ask for there, by flavor; without what is lent.

    In two queries. `tenancy` comes with its cluster.
    """
    flavors = {
        one.name: one for one in Flavor.objects.filter(cluster=tenancy.cluster_id)
    }
    offered = {} if tenancy.cluster.why_closed else _offered(tenancy, flavors)
    return _pools(tenancy, flavors, ()), offered


def _place(
    tenancy: Tenancy,
    flavors: Mapping[str, Flavor],
    lenders: Sequence[Lender],
    by: User,
    templates: Mapping[str, Template],
) -> Place:
    cpus, memory = room(tenancy.desired)
    return Place(
        cluster=tenancy.cluster.title,
        where=Where(
            namespace=tenancy.namespace,
            team=tenancy.team.slug,
            project=tenancy.project.slug,
            cost_centre=tenancy.team.cost_centre,
            environment=tenancy.environment,
            queue=queue_name(tenancy.namespace, tenancy.cluster.queueing),
            started_by=by.email or by.name,
            variables=tenancy.cluster.run_variables,
        ),
        pools=_pools(tenancy, flavors, lenders),
        priorities=tenancy.open_priorities,
        abilities=abilities_of(tenancy),
        cpus=cpus,
        memory=memory,
        rooms=rooms_of(tenancy.desired, _lent(tenancy, lenders)),
        images=settings.ENV.run_images,
        templates=templates,
        volumes=[DATASETS, *(claim_name(one.name) for one in tenancy.desired.volumes)],
        offered=_offered(tenancy, flavors),
    )


def _offered(tenancy: Tenancy, flavors: Mapping[str, Flavor]) -> Mapping[str, Pool]:
    levels = _levels(tenancy.cluster)
    return {
        name: _pool(one, flavors.values(), 0, 0, levels.get(name, ()))
        for name, one in flavors.items()
        if one.is_offered and one.dedicated_to_id in (None, tenancy.team_id)
    }


def _pools(
    tenancy: Tenancy, flavors: Mapping[str, Flavor], lenders: Sequence[Lender]
) -> Mapping[str, Pool]:
    spec, levels = tenancy.desired, _levels(tenancy.cluster)
    lent = _lent(tenancy, lenders)
    return {
        quota.name: _pool(
            flavors[quota.name],
            flavors.values(),
            quota.gpus,
            min(quota.borrow, lent.get((quota.name, quota.resource), 0)),
            levels.get(quota.name, ()),
        )
        for quota in spec.flavors
        if quota.gpus and quota.name in flavors
    }


def _lent(tenancy: Tenancy, lenders: Sequence[Lender]) -> Mapping[Cell, int]:
    return lent_to(tenancy.namespace, tenancy.desired.cohort, lenders)


def _lenders(clusters: Collection[int]) -> Mapping[int, list[Lender]]:
    """The queues of clusters: the portal's as it wants them, everybody else's as they were last seen there.

    The portal gives a Cohort no quota of its own and reads none.
    """
    found: dict[int, list[Lender]] = defaultdict(list)
    # Of a team without access, the queue stands with a quota of nothing.
    rows = Tenancy.objects.filter(cluster__in=clusters, stage__in=WITH_ACCESS)
    for cluster, name, cohort, flavors in rows.values_list(
        "cluster_id", "namespace", "spec__cohort", "spec__flavors"
    ):
        lends = dict[Cell, int]()
        for one in flavors or ():
            flavor, gpus = one["name"], one["gpus"]
            lends[flavor, one.get("resource", GPU)] = gpus
            lends[flavor, CPU] = gpus * one["cpu_per_gpu"]
            lends[flavor, MEMORY] = gpus * one["memory_gib_per_gpu"]
        found[cluster].append(Lender(name=name, cohort=cohort or "", lends=lends))
    own = Tenancy.objects.present().filter(
        cluster=OuterRef("cluster"), namespace=OuterRef("name")
    )
    copies = ClusterObject.objects.filter(
        ~Exists(own), cluster__in=clusters, kind="ClusterQueue"
    )
    for cluster, name, body in copies.values_list("cluster_id", "name", "body"):
        queue = queue_of(body)
        lends = {(one.flavor, one.resource): one.lends for one in queue.quotas}
        lends |= sizes_lent_by(body)
        found[cluster].append(Lender(name=name, cohort=queue.cohort, lends=lends))
    return found


def abilities_of(tenancy: Tenancy) -> Abilities:
    """What the cluster was last seen to run; plain Jobs alone where nobody has looked yet."""
    seen: ClusterAbility | None = getattr(tenancy.cluster, "ability", None)
    queueing = tenancy.cluster.queueing
    if seen is None:
        return Abilities(ALWAYS, queueing=queueing, is_known=False)
    fields = {kind: asked["fields"] for kind, asked in seen.schemas.items()}
    return Abilities(
        frozenset(seen.kinds), seen.integrations, queueing=queueing, fields=fields
    )


def claims_of(tenancy: Tenancy) -> Mapping[str, str]:
    """The claims that the portal keeps in a namespace, by name: what each is."""
    rows = (
        Allocation.objects.live()
        .filter(tenancy=tenancy, offering="volume")
        .order_by("title")
    )
    volumes = {
        claim_name(spec["name"]): title
        for spec, title in rows.values_list("spec", "title")
    }
    return {"datasets": "the team's shared disk", **volumes}


def _levels(cluster: Cluster) -> Mapping[str, tuple[str, ...]]:
    """The levels of each flavor's topology in which several nodes can be together."""
    seen: ClusterAbility | None = getattr(cluster, "ability", None)
    found = seen.topologies if seen is not None else {}
    return {
        name: tuple(one for one in levels if one != HOSTNAME)
        for name, levels in found.items()
    }


def _pool(
    flavor: Flavor,
    there: Iterable[Flavor],
    gpus: int,
    borrow: int,
    levels: tuple[str, ...] = (),
) -> Pool:
    is_spot = flavor.is_spot
    wanted = Flavor.Capacity.ON_DEMAND if is_spot else Flavor.Capacity.SPOT
    same = [
        one
        for one in there
        if (one.product, one.memory_gb, one.resource)
        == (flavor.product, flavor.memory_gb, flavor.resource)
    ]
    # The cheapest: that is what a team would ask for.
    others = [one for one in same if one.capacity_type == wanted and one.is_offered]
    other = min(others, key=lambda one: one.price_per_gpu_hour, default=None)
    spot = flavor if is_spot else other
    return Pool(
        kind=Kind(
            flavor.name, flavor.resource, flavor.node_labels, flavor.node_taints or []
        ),
        product=flavor.product,
        gpus=gpus,
        borrow=borrow,
        per_node=flavor.gpus_per_node,
        usd_per_hour=flavor.price_per_gpu_hour,
        memory=flavor.memory_gb,
        is_spot=is_spot,
        other=other.name if other else "",
        other_usd=other.price_per_gpu_hour if other else None,
        interruption_hours=spot.interruption_hours if spot else 0,
        levels=levels,
        on_cluster=flavor.gpus_total,
        driver=lowest(flavor.versions, Component.DRIVER),
        cuda=lowest(flavor.versions, Component.CUDA),
    )
