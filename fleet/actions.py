"""What changes about the fleet: clusters and flavors are added and changed by platform leads, and audited."""

import re
from collections.abc import Iterable, Mapping, Set
from copy import copy
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from accounts.models import Team, User
from accounts.roles import Permission
from audit import clock
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from connectors.errors import PermanentError
from connectors.kubernetes import check_kubeconfig
from fleet import dedicated_nodes, planned_maintenance, queueing, repositories
from fleet.announcing import tell_announced, tell_closed_or_open, tell_maintenance
from fleet.authority import AuthorityRefused, certificates_from
from fleet.egress import EgressRefused, egress_from
from fleet.models import Cluster, Flavor
from fleet.names import (
    LABEL_KEY,
    LABEL_VALUE,
    OBJECT_NAME,
    RESOURCE,
    SERVICE,
    fits,
    is_shared_space,
)
from fleet.services import ServiceRefused, services_from
from web.refusals import BadInput, Conflict, NoRight, Stale

CLUSTER_FIELDS = frozenset(
    {
        "title",
        "region",
        "purpose",
        "kubeconfig",
        "context",
        "cohort",
        "borrow_percent",
        "storage_class",
        "enabled",
        "jupyterhub_namespace",
        "shared_services",
        "egress",
        "run_variables",
        "outside_by_name",
        "dashboards",
        "dedicated_to",
        "on_drift",
        "writes_per_second",
        "most_at_once",
        "api_server",
        "kubelogin_server_id",
        "dashboards_url",
        "prometheus",
        "certificate_authority",
        "azure_id",
        "announcement",
        "announced_until",
        "queueing",
        *planned_maintenance.FIELDS,
        *repositories.FIELDS,
    }
)
FLAVOR_FIELDS = frozenset(
    {
        "product",
        "memory_gb",
        "gpus_per_node",
        "capacity_type",
        "price_per_gpu_hour",
        "follows_list",
        "node_labels",
        "node_taints",
        "cpu_per_gpu",
        "memory_gib_per_gpu",
        "is_offered",
        "resource",
        "dedicated_to",
        "gpus_total",
        "min_nodes",
        "max_nodes",
        "growing_minutes",
        "interruption_hours",
        "node_pool",
    }
)
# These stand in commands that people paste: nothing in them may mean anything to a shell.
WEB_ADDRESS = re.compile(
    r"https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?"
)
OBJECT_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
AZURE_ID = re.compile(
    r"/subscriptions/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/resourcegroups/[\w.()-]{1,90}"
    r"/providers/microsoft\.containerservice/managedclusters/[\w-]{1,63}",
    re.ASCII | re.IGNORECASE,
)
NODE_POOL = re.compile(r"[a-z][a-z0-9]{0,11}", re.ASCII)
# Of a new cluster: idle GPUs are lent, and one team borrows at most as much again as it holds.
DEFAULT_BORROW_PERCENT = 100
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
NOT_OF_A_CLUSTER = ("QM_", "KUBERNETES_")
MOST_VARIABLES, LONGEST_VALUE = 50, 1_000
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# Every cluster has the portal's own ResourceFlavor for work without GPUs, named like this.
RESERVED = "quartermaster"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
APART = frozenset({"node_labels", "node_taints", "dedicated_to"})
# What decides how many GPUs a pool can grow to, and which of its nodes may leave.
POOL = frozenset({"min_nodes", "max_nodes", "gpus_per_node"})
MOMENTS = ("announced_until", planned_maintenance.STARTS, planned_maintenance.ENDS)
PRICED = ("is_list_price", "priced_at")
COUNTED = ("gpus_total", "gpus_ready", "gpus_cordoned", "gpus_seen_at")
LACKS: Mapping[str, str] = {
    "node_taints": "Nodes for one team alone need a taint (NoSchedule or NoExecute) that no other kind of GPU here "
    "has: without it others' jobs run on them.",
    "node_labels": "Nodes for one team alone need a label that no other kind of GPU here has: without it they are "
    "not told apart from others' nodes.",
}
TAKES: Mapping[str, str] = {
    "node_taints": "{own} is one team's alone, and this taint keeps others off: no other kind has it.",
    "node_labels": "{own} is one team's alone, and these are the labels of its nodes: no other kind has them.",
}
# Prices of one kind of GPU that differ more are not believed at once.
MOST_TIMES = 10
# Not kept in events.
LONG = frozenset({"certificate_authority"})
# The database refuses these too; here they are said at their field.
LIMITS: Mapping[str, tuple[Any, Any, str]] = {
    "borrow_percent": (0, 100, "Borrow between 0 and 100 percent."),
    "writes_per_second": (1, 1000, "Between 1 and 1,000 writes a second."),
    "most_at_once": (1, 64, "Work on between 1 and 64 teams at once."),
    "memory_gb": (1, 10_000, "A GPU has between 1 and 10,000 GB."),
    "gpus_total": (0, 100_000, "There are between 0 and 100,000 GPUs."),
    "min_nodes": (0, 1000, "A pool has between 0 and 1,000 nodes."),
    "max_nodes": (0, 1000, "A pool has between 0 and 1,000 nodes."),
    "growing_minutes": (0, 240, "Growing takes between 0 and 240 minutes."),
    "interruption_hours": (
        0,
        8760,
        "A node is taken back after between 1 and 8,760 hours; 0 says nothing.",
    ),
    "gpus_per_node": (1, 64, "A node has between 1 and 64 GPUs."),
    "cpu_per_gpu": (1, 1000, "Between 1 and 1,000 CPUs go with a GPU."),
    "memory_gib_per_gpu": (1, 10_000, "Between 1 and 10,000 GiB go with a GPU."),
    "price_per_gpu_hour": (
        Decimal("0.0001"),
        Decimal(10_000),
        "A GPU-hour costs between $0.0001 and $10,000.",
    ),
}


@transaction.atomic
def add_cluster(*, name: str, values: Mapping[str, Any], by: User | Actor) -> Cluster:
    """Add a cluster; a worker looks at it within a minute. Raises NoRight, BadInput or Conflict naming the field.

    `values` may hold what CLUSTER_FIELDS names; `kubeconfig` is the plain name of a file in the configured folder.
    Teams may borrow as much again as they hold, unless it says otherwise or its queues are Volcano's.
    """
    actor = manages_clusters(by)
    lends = values.get("queueing") != Cluster.Queueing.VOLCANO
    cluster = Cluster(name=name, borrow_percent=DEFAULT_BORROW_PERCENT if lends else 0)
    changed = _fill(cluster, values, CLUSTER_FIELDS)
    queueing.check_new(cluster)
    _check_kubeconfig(cluster)
    repositories.check_repository(cluster)
    _check_authority(cluster)
    _check_around(cluster)
    _check_variables(cluster)
    _check_names(cluster, changed)
    planned_maintenance.check_and_settle(
        cluster, changed, before=Cluster(), now=clock.now()
    )
    _save_new(cluster, taken="There is a cluster of this name already.")
    record(
        Kind.CLUSTER_ADDED,
        actor=actor,
        subject=("cluster", cluster.pk),
        name=name,
        **_plain(changed),
    )
    return cluster


@transaction.atomic
def change_cluster(
    cluster_id: int, *, values: Mapping[str, Any], by: User | Actor
) -> Cluster:
    """Change a cluster, never its name or whose queues it has: namespaces carry them.

    Raises NoRight, BadInput or Conflict naming the field.
    """
    actor = manages_clusters(by)
    cluster = locked(cluster_id)
    before, was = _values_of(cluster, CLUSTER_FIELDS), copy(cluster)
    changed = _fill(cluster, values, CLUSTER_FIELDS)
    planned_maintenance.check_and_settle(cluster, changed, before=was, now=clock.now())
    queueing.check_fixed(changed)
    if {"kubeconfig", "context"} & changed.keys():
        _check_kubeconfig(cluster)
    if repositories.FIELDS & changed.keys():
        queueing.check_delivery(cluster)
        repositories.check_repository(cluster)
    if "certificate_authority" in changed:
        _check_authority(cluster)
    _check_around(cluster)
    queueing.check_borrowing(cluster)
    queueing.check_hub(cluster)
    if "run_variables" in changed:
        _check_variables(cluster)
    _check_names(cluster, changed)
    if "dedicated_to" in changed:
        _check_empty_of_others(cluster)
    if changed:
        _check_stands(cluster)
        try:
            with transaction.atomic():
                cluster.save(update_fields=[*changed])
        except IntegrityError as error:
            _refuse_same_aks(cluster, error)
            raise
        record(
            Kind.CLUSTER_CHANGED,
            actor=actor,
            subject=("cluster", cluster.pk),
            name=cluster.name,
            **_with_before(changed, before),
        )
        _tell_teams(cluster, changed.keys(), before=was, now=clock.now())
    return cluster


def _tell_teams(
    cluster: Cluster, changed: Set[str], *, before: Cluster, now: datetime
) -> None:
    """Tell the teams of a cluster what they have to know of a change of these fields."""
    if {"announcement", "announced_until"} & changed:
        tell_announced(cluster, now=now)
    if planned_maintenance.FIELDS & changed:
        tell_maintenance(cluster, before=before, now=now)
    if "enabled" in changed:
        tell_closed_or_open(cluster, now=now)


@transaction.atomic
def add_flavor(
    cluster: Cluster, *, name: str, values: Mapping[str, Any], by: User | Actor
) -> Flavor:
    """Add a kind of GPU to a cluster; its GPUs are counted when a worker next looks at the nodes.

    How many there are (`gpus_total`) is told for a cluster that nobody observes, and for no other; to how many nodes
    an autoscaler may take the pool (`max_nodes`) for one that is observed. Raises NoRight, BadInput or Conflict naming
    the field.
    """
    actor = manages_clusters(by)
    if name.startswith(RESERVED):
        raise BadInput(
            f"Names that start with “{RESERVED}” are the portal's own.",
            code="reserved",
            field="name",
        )
    flavor = Flavor(cluster=locked(cluster.pk), name=name)
    _check_stands(flavor.cluster)
    changed = _fill(flavor, values, FLAVOR_FIELDS)
    _check_nodes(flavor)
    queueing.check_resource(flavor)
    _check_apart(flavor)
    _check_told(flavor, changed)
    _check_pool(flavor, changed)
    _count_again(flavor)
    _set_price(flavor, changed, followed=False)
    _save_new(flavor, taken="The cluster has a flavor of this name already.")
    record(
        Kind.FLAVOR_ADDED,
        actor=actor,
        subject=("flavor", flavor.pk),
        name=name,
        cluster=cluster.name,
        **_plain(changed),
    )
    return flavor


@transaction.atomic
def change_flavor(
    flavor_id: int,
    *,
    values: Mapping[str, Any],
    by: User | Actor,
    price_is_meant: bool = False,
) -> Flavor:
    """Change a flavor, never its name or cluster; what is held keeps the price it was granted at.

    A price of more than ten times the one before, or less than a tenth, is taken only where `price_is_meant`: the
    decimal point may have been forgotten.

    How many GPUs there are (`gpus_total`) is told for a cluster that nobody observes; what an autoscaler may do
    (`min_nodes`, `max_nodes`, `growing_minutes`) for one that is observed. Raises NoRight or BadInput.
    """
    actor = manages_clusters(by)
    locked(Flavor.objects.values_list("cluster", flat=True).get(pk=flavor_id))
    flavor = (
        Flavor.objects.select_for_update(of=("self",), no_key=True)
        .select_related("cluster")
        .get(pk=flavor_id)
    )
    follows, before = flavor.follows_list, _values_of(flavor, FLAVOR_FIELDS)
    changed = _fill(flavor, values, FLAVOR_FIELDS)
    if changed:
        _check_stands(flavor.cluster)
    _check_nodes(flavor)
    _set_price(flavor, changed, followed=follows)
    if not price_is_meant:
        _doubt_price(before["price_per_gpu_hour"], flavor.price_per_gpu_hour)
    if APART & changed.keys():
        _check_apart(flavor)
    _check_told(flavor, changed)
    _check_pool(flavor, changed)
    if {"resource", "dedicated_to"} & changed.keys():
        queueing.check_resource(flavor)
        _check_free_to_change(flavor, changed)
    if changed:
        if "gpus_total" in changed:
            flavor.gpus_seen_at = None
        _count_again(flavor)
        flavor.save(update_fields=[*changed, *COUNTED, *PRICED])
        if POOL & changed.keys():
            _let_nodes_leave(flavor.cluster)
        record(
            Kind.FLAVOR_CHANGED,
            actor=actor,
            subject=("flavor", flavor.pk),
            name=flavor.name,
            **_with_before(changed, before),
        )
    return flavor


@transaction.atomic
def take_list_price(flavor_id: int, *, usd: Decimal, of: datetime) -> bool:
    """Have a kind of GPU that follows Azure's list cost what it says, in USD per GPU-hour; whether that changes it.

    `of` is when the list was read. What is granted keeps its price. One that follows no list any more, that has the
    price of a later reading, or for which `usd` is no price, stays as it is.
    """
    locked(Flavor.objects.values_list("cluster", flat=True).get(pk=flavor_id))
    flavor = Flavor.objects.select_for_update(of=("self",), no_key=True).get(
        pk=flavor_id
    )
    least, most, _ = LIMITS["price_per_gpu_hour"]
    is_older = (
        flavor.is_list_price and flavor.priced_at is not None and flavor.priced_at > of
    )
    if not flavor.follows_list or is_older or not least <= usd <= most:
        return False
    before, flavor.price_per_gpu_hour = flavor.price_per_gpu_hour, usd
    flavor.is_list_price, flavor.priced_at = True, of
    flavor.save(update_fields=["price_per_gpu_hour", *PRICED])
    if before == usd:
        return False
    record(
        Kind.FLAVOR_CHANGED,
        actor=PORTAL,
        subject=("flavor", flavor.pk),
        name=flavor.name,
        price_per_gpu_hour=str(usd),
        price_per_gpu_hour_before=str(before),
        priced_by="Azure's list",
    )
    return True


@transaction.atomic
def accept_identity(cluster_id: int, *, found: str, by: User) -> Cluster:
    """Have this cluster be the API server that its kubeconfig leads to now; the next look goes on there.

    `found` is what was seen, so that nobody accepts a third one. Raises NoRight, Conflict or Stale.
    """
    actor = manages_clusters(by)
    cluster = locked(cluster_id)
    if not cluster.identity_found:
        raise Conflict(
            "The kubeconfig leads where it always led.", code="nothing_to_accept"
        )
    if found != cluster.identity_found:
        raise Stale(
            "The kubeconfig leads somewhere else by now. Look again.", code="stale"
        )
    before, cluster.identity, cluster.identity_found = cluster.identity, found, ""
    try:
        with transaction.atomic():
            cluster.save(update_fields=["identity", "identity_found"])
    except IntegrityError as error:
        raise Conflict(
            "This API server is registered as another cluster.", code="registered_twice"
        ) from error
    # Its nodes are others: they are counted as those of a new cluster.
    _believe(cluster)
    record(
        Kind.CLUSTER_CHANGED,
        actor=actor,
        subject=("cluster", cluster.pk),
        name=cluster.name,
        identity=found,
        identity_before=before,
    )
    return cluster


@transaction.atomic
def accept_capacity(cluster_id: int, *, by: User) -> Cluster:
    """Believe at the next look how many nodes the cluster lists, however few. Raises NoRight or Conflict."""
    actor = manages_clusters(by)
    cluster = locked(cluster_id)
    if not cluster.capacity_doubt:
        raise Conflict("What the cluster lists is believed.", code="nothing_to_accept")
    reason = cluster.capacity_doubt
    _believe(cluster)
    record(
        Kind.CLUSTER_CHANGED,
        actor=actor,
        subject=("cluster", cluster.pk),
        name=cluster.name,
        accepted=reason,
    )
    return cluster


def _believe(cluster: Cluster) -> None:
    cluster.nodes_seen, cluster.capacity_doubt, cluster.doubted_looks = 0, "", 0
    cluster.save(update_fields=["nodes_seen", "capacity_doubt", "doubted_looks"])


def manages_clusters(by: User | Actor) -> Actor:
    """Who is written down: a platform lead, or the installation's settings, which need no role."""
    if isinstance(by, Actor):
        return by
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads add and change clusters.", code="not_a_platform_lead"
        )
    return by.as_actor()


def locked(cluster_id: int) -> Cluster:
    """The cluster, so that nobody else changes it or its kinds of GPU meanwhile; locked before any of these."""
    return Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)


def _fill(
    row: models.Model, values: Mapping[str, Any], allowed: frozenset[str]
) -> dict[str, Any]:
    """Set what differs and check the whole row; returns what differs. Raises BadInput naming the field."""
    unknown = next((field for field in values if field not in allowed), None)
    if unknown is not None:
        raise BadInput("This cannot be set.", code="unknown_field", field=unknown)
    values = _with_whole_minute(_with_team(values))
    changed = {
        field: value for field, value in values.items() if getattr(row, field) != value
    }
    for field, value in changed.items():
        setattr(row, field, value)
    try:
        # Only what people give is checked: what is observed may be empty, labels and taints have checks of their own.
        given = allowed - {"node_labels", "node_taints"}
        row.clean_fields(
            exclude={f.name for f in row._meta.fields if f.name not in given}
        )
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise BadInput(messages[0], code="invalid", field=field) from error
    for field in ("cohort", "storage_class"):
        if changed.get(field) and not OBJECT_NAME.fullmatch(str(changed[field])):
            raise BadInput(
                "Use small letters, digits, hyphens and dots.",
                code="bad_name",
                field=field,
            )
    for field, (least, most, words) in LIMITS.items():
        if hasattr(row, field) and not least <= getattr(row, field) <= most:
            raise BadInput(words, code="out_of_range", field=field)
    return changed


def _check_told(flavor: Flavor, changed: Mapping[str, Any]) -> None:
    """Refuse to be told how many GPUs there are where they are counted, or fewer than are held."""
    if "gpus_total" not in changed:
        return
    if flavor.cluster.is_observed:
        raise BadInput(
            "The portal counts the GPUs of this cluster's nodes.",
            code="counted",
            field="gpus_total",
        )
    if flavor.gpus_total < flavor.allocated:
        raise BadInput(
            f"{flavor.allocated} are held.",
            code="below_what_is_held",
            field="gpus_total",
        )


def _check_pool(flavor: Flavor, changed: Mapping[str, Any]) -> None:
    """Refuse a minimum over the maximum, an autoscaler where nobody sees what it does, and no pool of AKS."""
    if changed.get("node_pool") and not NODE_POOL.fullmatch(flavor.node_pool):
        raise BadInput(
            "The name of a node pool of AKS has at most 12 small letters and digits, a letter first.",
            code="bad_name",
            field="node_pool",
        )
    if changed.get("node_pool") and not flavor.cluster.azure_id:
        raise BadInput(
            f"Give the Azure resource id of {flavor.cluster.title} first, on its page.",
            code="not_in_azure",
            field="node_pool",
        )
    if flavor.min_nodes > flavor.max_nodes:
        raise BadInput(
            "The least number of nodes is not over the largest.",
            code="out_of_range",
            field="min_nodes",
        )
    if changed.get("max_nodes") and not flavor.cluster.is_observed:
        raise BadInput(
            "The portal does not see this cluster's nodes: say how many GPUs there are at most, as their number.",
            code="not_observed",
            field="max_nodes",
        )


def _set_price(flavor: Flavor, changed: Mapping[str, Any], *, followed: bool) -> None:
    """Keep when people set the price; refuse another one than the list's while it is followed, and no list at all."""
    if flavor.follows_list and not flavor.cluster.azure_id:
        raise BadInput(
            f"Give the Azure resource id of {flavor.cluster.title} first, on its page.",
            code="not_in_azure",
            field="follows_list",
        )
    if "price_per_gpu_hour" in changed and flavor.follows_list and followed:
        raise BadInput(
            "This kind follows Azure's list price. Have it follow no list to set a price of your own.",
            code="follows_list",
            field="price_per_gpu_hour",
        )
    if "price_per_gpu_hour" in changed or (followed and not flavor.follows_list):
        flavor.is_list_price, flavor.priced_at = False, clock.now()


def _doubt_price(before: Decimal, after: Decimal) -> None:
    """Refuse a price that has moved so far that it may be mistyped."""
    if before / MOST_TIMES <= after <= before * MOST_TIMES:
        return
    what = (
        f"{after / before:,.0f} times"
        if after > before
        else f"1/{before / after:,.0f} of"
    )
    raise BadInput(
        f"This is {what} the price of now, ${before.normalize():f}. Say that it is meant.",
        code="doubtful_price",
        field="price_per_gpu_hour",
    )


def _count_again(flavor: Flavor) -> None:
    """What can be had follows from what is ready and what the pool may grow to; or it is told, as if all was ready."""
    if flavor.cluster.is_observed:
        flavor.gpus_total = flavor.gpus_obtainable
    else:
        flavor.gpus_ready, flavor.gpus_cordoned = flavor.gpus_total, 0


def _let_nodes_leave(cluster: Cluster) -> None:
    """Compare no list of nodes with one of before: other nodes than then may leave by themselves."""
    Cluster.objects.filter(pk=cluster.pk, capacity_doubt="").update(nodes_seen=0)


def _with_team(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values with the team they are dedicated to, which may be given by its slug; empty is nobody's own."""
    slug = values.get("dedicated_to")
    if not isinstance(slug, str):
        return values
    team = Team.objects.filter(slug=slug).first()
    if slug and team is None:
        raise BadInput(
            "There is no team of this name.", code="no_such_team", field="dedicated_to"
        )
    return {**values, "dedicated_to": team}


def _with_whole_minute(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values with moments as a form shows them, which a file may give as text."""
    return dict(values) | {
        field: _whole_minute(field, values[field])
        for field in MOMENTS
        if values.get(field) is not None
    }


def _whole_minute(field: str, at: Any) -> Any:
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError as error:
            raise BadInput(
                "Give a time with its zone, such as 2026-12-31T18:00:00Z.",
                code="invalid",
                field=field,
            ) from error
    if not isinstance(at, datetime):
        return at
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return at.replace(second=0, microsecond=0)


def _save_new(row: models.Model, *, taken: str) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if isinstance(row, Cluster):
            _refuse_same_aks(row, error)
        if type(row).objects.filter(name=row.name).exists():  # type: ignore[attr-defined]
            raise Conflict(taken, code="name_taken", field="name") from error
        raise BadInput(
            "Use small letters, digits and dashes, beginning with a letter.",
            code="bad_name",
            field="name",
        ) from error


def _refuse_same_aks(cluster: Cluster, error: IntegrityError) -> None:
    """Raises Conflict where another cluster has this one's resource id."""
    others = Cluster.objects.exclude(pk=cluster.pk).filter(
        azure_id__iexact=cluster.azure_id
    )
    if cluster.azure_id and others.exists():
        raise Conflict(
            "Another cluster has this resource id.",
            code="registered_twice",
            field="azure_id",
        ) from error


def _check_kubeconfig(cluster: Cluster) -> None:
    """Refuse everything but the plain name of a kubeconfig that is there; empty means the portal's own cluster."""
    name = cluster.kubeconfig
    if not name:
        return
    if not FILE_NAME.fullmatch(name):
        raise BadInput(
            "Give the name of a file in the portal's kubeconfig folder, without a path.",
            code="no_kubeconfig",
            field="kubeconfig",
        )
    path = Path(settings.ENV.kubeconfig_dir) / name
    if not path.is_file():
        raise BadInput(
            "The portal's kubeconfig folder has no file of this name.",
            code="no_kubeconfig",
            field="kubeconfig",
        )
    try:
        check_kubeconfig(path, cluster.context or None)
    except PermanentError as error:
        raise BadInput(
            "This file is no kubeconfig with this context: it must name a cluster's address and a user.",
            code="bad_kubeconfig",
            field="kubeconfig",
        ) from error


def _check_authority(cluster: Cluster) -> None:
    """Keep the certificates of what was said and nothing else; refuse what holds none."""
    try:
        cluster.certificate_authority = certificates_from(
            cluster.certificate_authority, now=clock.now()
        )
    except AuthorityRefused as error:
        raise BadInput(
            str(error), code="bad_certificate", field="certificate_authority"
        ) from error


def _check_around(cluster: Cluster) -> None:
    """Refuse a notebook hub or shared services that would open one team's namespace to another."""
    hub = cluster.jupyterhub_namespace
    if hub and not is_shared_space(hub):
        raise BadInput(
            "Give the namespace the hub lives in: small letters, digits, hyphens, and no team's.",
            code="bad_name",
            field="jupyterhub_namespace",
        )
    for field in ("api_server", "dashboards_url"):
        if getattr(cluster, field) and not WEB_ADDRESS.fullmatch(
            getattr(cluster, field)
        ):
            raise BadInput(
                "Give an address that starts with https://, without spaces or a password.",
                code="bad_address",
                field=field,
            )
    if cluster.prometheus and not SERVICE.fullmatch(cluster.prometheus):
        raise BadInput(
            "Give namespace/service:port, such as monitoring/prometheus-operated:9090.",
            code="bad_service",
            field="prometheus",
        )
    if cluster.azure_id and not AZURE_ID.fullmatch(cluster.azure_id):
        raise BadInput(
            "Give the cluster's resource id, as `az aks show --query id` prints it.",
            code="bad_id",
            field="azure_id",
        )
    if not OBJECT_ID.fullmatch(cluster.kubelogin_server_id):
        raise BadInput(
            "Give the object id of an Entra application, such as 6dae42f8-4368-4678-94ff-3960e28e3630.",
            code="bad_id",
            field="kubelogin_server_id",
        )
    try:
        services_from(cluster.shared_services)
    except ServiceRefused as refusal:
        raise BadInput(
            str(refusal), code="bad_service", field="shared_services"
        ) from refusal
    try:
        egress_from(cluster.egress)
    except EgressRefused as refusal:
        raise BadInput(str(refusal), code="bad_egress", field="egress") from refusal


def _check_variables(cluster: Cluster) -> None:
    """Refuse what is no environment of a program, or what the portal and Kubernetes say themselves."""
    given = cluster.run_variables
    if not isinstance(given, dict) or len(given) > MOST_VARIABLES:
        raise BadInput(
            f"Give at most {MOST_VARIABLES} variables by their names, such as NCCL_DEBUG.",
            code="bad_variables",
            field="run_variables",
        )
    for name, value in given.items():
        if not VARIABLE.fullmatch(name) or name.startswith(NOT_OF_A_CLUSTER):
            raise BadInput(
                f"“{name[:60]}” cannot be set for runs: use letters, digits and underscores, and neither QM_ nor "
                "KUBERNETES_ at the beginning.",
                code="bad_variables",
                field="run_variables",
            )
        if (
            not isinstance(value, str)
            or len(value) > LONGEST_VALUE
            or not value.isprintable()
        ):
            raise BadInput(
                f"{name} is text in one line of at most {LONGEST_VALUE} characters.",
                code="bad_variables",
                field="run_variables",
            )


def _check_names(cluster: Cluster, changed: Mapping[str, Any]) -> None:
    """Refuse ways out by name where nothing would enforce them; what stands from before is left to the next look."""
    if not {"egress", "outside_by_name"} & changed.keys() or cluster.takes_names:
        return
    if any(rule.names for rule in egress_from(cluster.egress)):
        raise BadInput(
            _why_no_names(cluster), code="no_ways_out_by_name", field="egress"
        )


def _why_no_names(cluster: Cluster) -> str:
    """Why a cluster takes no ways out by name, and what to do."""
    if cluster.outside_by_name == Cluster.ByName.NONE:
        return f"{cluster.title} takes no ways out by name (outside_by_name): name ranges of addresses."
    if cluster.has_cilium is None:
        return (
            f"It is not known yet whether {cluster.title} has Cilium, which enforces names. Wait for the first look at "
            "it, or say that it has (outside_by_name)."
        )
    return (
        f"{cluster.title} has no CiliumNetworkPolicy (cilium.io/v2) that the portal may write: name ranges of "
        "addresses, or apply deploy/kubernetes/ there if its network is Cilium."
    )


def _check_stands(cluster: Cluster) -> None:
    if cluster.written_off_at is not None:
        raise Conflict(
            f"{cluster.title} is written off, and what stood there is let go of. Register it anew, by another name.",
            code="written_off",
        )


def _check_empty_of_others(cluster: Cluster) -> None:
    """Refuse to give a cluster to one team while others are on it; who is gone is history there."""
    others = cluster.tenancies.exclude(team=cluster.dedicated_to_id).exclude(
        stage="gone"
    )
    if cluster.dedicated_to_id is not None and others.exists():
        raise Conflict(
            "Other teams are on this cluster. They leave before it can be one team's own.",
            code="others_are_there",
            field="dedicated_to",
        )


def _check_free_to_change(flavor: Flavor, changed: Mapping[str, Any]) -> None:
    """Refuse to rename or give away GPUs that are held or booked: what is granted stays what it was."""
    granted = flavor.allocations.filter(ended_at=None)
    booked = granted.filter(begun_at=None).aggregate(all=models.Sum("gpus", default=0))
    count = flavor.allocated + booked["all"]
    if "resource" in changed and count:
        raise Conflict(
            f"{count} of these are held or booked. What they are can change when none is.",
            code="held",
            field="resource",
        )
    others = granted.exclude(team=flavor.dedicated_to_id)
    if flavor.dedicated_to_id is not None and others.exists():
        raise Conflict(
            "Other teams hold or have booked some of these. They end, are given back or are cancelled before the nodes "
            "can be one team's own.",
            code="held",
            field="dedicated_to",
        )


def _check_apart(flavor: Flavor) -> None:
    """Refuse nodes of one's own that others' work may run on, and to lead others' work to such nodes."""
    fleet = list(flavor.cluster.flavors.all())
    lacks = (
        dedicated_nodes.lacking(flavor, fleet)
        if flavor.dedicated_to_id is not None
        else ""
    )
    if lacks:
        raise BadInput(LACKS[lacks], code="not_apart", field=lacks)
    taken = dedicated_nodes.taken_by(flavor, fleet)
    if taken is not None:
        own, lacks = taken
        raise BadInput(TAKES[lacks].format(own=own.name), code="not_apart", field=lacks)


def _check_nodes(flavor: Flavor) -> None:
    """Refuse labels, taints and a resource that no node can have."""
    if not fits(RESOURCE, flavor.resource):
        raise BadInput(
            "Nodes count GPUs as nvidia.com/gpu, or as a MIG profile such as nvidia.com/mig-1g.10gb.",
            code="bad_resource",
            field="resource",
        )
    labels, taints = flavor.node_labels, flavor.node_taints
    if not isinstance(labels, dict) or not all(
        _is_label(key, value) for key, value in labels.items()
    ):
        raise BadInput(
            "Labels are names and values as nodes carry them.",
            code="bad_label",
            field="node_labels",
        )
    if not isinstance(taints, list) or not all(_is_taint(taint) for taint in taints):
        raise BadInput(
            f"A taint has a key, a value and an effect ({', '.join(EFFECTS)}).",
            code="bad_taint",
            field="node_taints",
        )


def _is_label(key: object, value: object) -> bool:
    texts = isinstance(key, str) and isinstance(value, str)
    return texts and bool(
        LABEL_KEY.fullmatch(str(key)) and LABEL_VALUE.fullmatch(str(value))
    )


def _is_taint(taint: object) -> bool:
    if not isinstance(taint, dict) or not {"key", "effect"} <= set(taint) <= {
        "key",
        "value",
        "effect",
    }:
        return False
    return (
        _is_label(taint["key"], taint.get("value", "")) and taint["effect"] in EFFECTS
    )


def _values_of(row: models.Model, fields: Iterable[str]) -> dict[str, Any]:
    return {field: getattr(row, field) for field in fields}


def _with_before(
    changed: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """What changed as an event keeps it, each with what it was; of certificates that they changed is enough."""
    was = _plain({key: before[key] for key in changed if key not in LONG})
    return _plain(changed) | {f"{key}_before": value for key, value in was.items()}


def _plain(changed: Mapping[str, Any]) -> dict[str, Any]:
    """The values as an event keeps them; the name of a kubeconfig is no secret, its content never comes here."""
    if "certificate_authority" in changed:
        changed = {
            **changed,
            "certificate_authority": "changed"
            if changed["certificate_authority"]
            else "",
        }
    return {
        key: value
        if isinstance(value, bool | int | dict | list)
        else str("" if value is None else value)
        for key, value in changed.items()
    }
