"""What changes about the fleet: clusters and flavors are added and changed by platform leads, and audited."""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from accounts.models import User
from accounts.refusals import BadInput, Conflict, NoRight
from accounts.roles import Permission
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster, Flavor

CLUSTER_FIELDS = frozenset(
    {"title", "region", "purpose", "kubeconfig", "context", "cohort", "borrow_percent", "storage_class", "enabled"}
)  # fmt: skip
FLAVOR_FIELDS = frozenset(
    {
        "product", "memory_gb", "gpus_per_node", "capacity_type", "price_per_gpu_hour", "node_labels", "node_taints",
        "cpu_per_gpu", "memory_gib_per_gpu", "is_offered",
    }
)  # fmt: skip
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
# As Kubernetes names cohorts and storage classes; both become names in its addresses.
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,58}[a-z0-9])?")
# Every cluster has the portal's own ResourceFlavor for work without GPUs, named like this.
RESERVED = "quartermaster"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# The database refuses these too; here they are said at their field.
LIMITS: Mapping[str, tuple[Any, Any, str]] = {
    "borrow_percent": (0, 100, "Borrow between 0 and 100 percent."),
    "memory_gb": (1, 10_000, "A GPU has between 1 and 10,000 GB."),
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
    """
    actor = _manages_clusters(by)
    cluster = Cluster(name=name)
    changed = _fill(cluster, values, CLUSTER_FIELDS)
    _check_kubeconfig(cluster.kubeconfig)
    _save_new(cluster, taken="There is a cluster of this name already.")
    record(Kind.CLUSTER_ADDED, actor=actor, subject=("cluster", cluster.pk), name=name, **_plain(changed))
    return cluster


@transaction.atomic
def change_cluster(cluster_id: int, *, values: Mapping[str, Any], by: User | Actor) -> Cluster:
    """Change a cluster, never its name: namespaces and queues carry it. Raises NoRight or BadInput."""
    actor = _manages_clusters(by)
    cluster = Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)
    changed = _fill(cluster, values, CLUSTER_FIELDS)
    if "kubeconfig" in changed:
        _check_kubeconfig(cluster.kubeconfig)
    if changed:
        cluster.save(update_fields=[*changed])
        record(
            Kind.CLUSTER_CHANGED, actor=actor, subject=("cluster", cluster.pk), name=cluster.name,
            **_plain(changed),
        )  # fmt: skip
    return cluster


@transaction.atomic
def add_flavor(cluster: Cluster, *, name: str, values: Mapping[str, Any], by: User | Actor) -> Flavor:
    """Add a kind of GPU to a cluster; its GPUs are counted when a worker next looks at the nodes.

    Raises NoRight, BadInput or Conflict naming the field.
    """
    actor = _manages_clusters(by)
    if name.startswith(RESERVED):
        raise BadInput(
            f"Names that start with “{RESERVED}” are the portal's own.", code="reserved", field="name"
        )
    flavor = Flavor(cluster=cluster, name=name)
    changed = _fill(flavor, values, FLAVOR_FIELDS)
    _check_nodes(flavor)
    _save_new(flavor, taken="The cluster has a flavor of this name already.")
    record(
        Kind.FLAVOR_ADDED, actor=actor, subject=("flavor", flavor.pk), name=name, cluster=cluster.name,
        **_plain(changed),
    )  # fmt: skip
    return flavor


@transaction.atomic
def change_flavor(flavor_id: int, *, values: Mapping[str, Any], by: User | Actor) -> Flavor:
    """Change a flavor, never its name or cluster; what is held keeps the price it was granted at.

    Raises NoRight or BadInput.
    """
    actor = _manages_clusters(by)
    flavor = (
        Flavor.objects.select_for_update(of=("self",), no_key=True)
        .select_related("cluster")
        .get(pk=flavor_id)
    )
    changed = _fill(flavor, values, FLAVOR_FIELDS)
    _check_nodes(flavor)
    if changed:
        flavor.save(update_fields=[*changed])
        record(
            Kind.FLAVOR_CHANGED, actor=actor, subject=("flavor", flavor.pk), name=flavor.name,
            **_plain(changed),
        )  # fmt: skip
    return flavor


def _manages_clusters(by: User | Actor) -> Actor:
    """Who is written down: a platform lead, or the installation's settings, which need no role."""
    if isinstance(by, Actor):
        return by
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight("Platform leads add and change clusters.", code="not_a_platform_lead")
    return by.as_actor()


def _fill(row: models.Model, values: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """Set what differs and check the whole row; returns what differs. Raises BadInput naming the field."""
    unknown = next((field for field in values if field not in allowed), None)
    if unknown is not None:
        raise BadInput("This cannot be set.", code="unknown_field", field=unknown)
    changed = {field: value for field, value in values.items() if getattr(row, field) != value}
    for field, value in changed.items():
        setattr(row, field, value)
    try:
        # Only what people give is checked: what is observed may be empty, labels and taints have checks of their own.
        given = allowed - {"node_labels", "node_taints"}
        row.clean_fields(exclude={f.name for f in row._meta.fields if f.name not in given})
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise BadInput(messages[0], code="invalid", field=field) from error
    for field in ("cohort", "storage_class"):
        if changed.get(field) and not OBJECT_NAME.fullmatch(str(changed[field])):
            raise BadInput("Use small letters, digits, hyphens and dots.", code="bad_name", field=field)
    for field, (least, most, words) in LIMITS.items():
        if hasattr(row, field) and not least <= getattr(row, field) <= most:
            raise BadInput(words, code="out_of_range", field=field)
    return changed


def _save_new(row: models.Model, *, taken: str) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if type(row).objects.filter(name=row.name).exists():  # type: ignore[attr-defined]
            raise Conflict(taken, code="name_taken", field="name") from error
        raise BadInput(
            "Use small letters, digits and dashes, beginning with a letter.", code="bad_name", field="name"
        ) from error


def _check_kubeconfig(name: str) -> None:
    """Refuse everything but the plain name of a file that is there; empty means the portal's own cluster."""
    if not name:
        return
    folder = Path(settings.ENV.kubeconfig_dir)
    if not FILE_NAME.fullmatch(name) or not (folder / name).is_file():
        raise BadInput(
            "Give the name of a file in the portal's kubeconfig folder, without a path.", code="no_kubeconfig",
            field="kubeconfig",
        )  # fmt: skip


def _check_nodes(flavor: Flavor) -> None:
    """Refuse labels and taints that no node can carry."""
    labels, taints = flavor.node_labels, flavor.node_taints
    if not isinstance(labels, dict) or not all(_is_label(key, value) for key, value in labels.items()):
        raise BadInput(
            "Labels are names and values as nodes carry them.", code="bad_label", field="node_labels"
        )
    if not isinstance(taints, list) or not all(_is_taint(taint) for taint in taints):
        raise BadInput(
            f"A taint has a key, a value and an effect ({', '.join(EFFECTS)}).",
            code="bad_taint",
            field="node_taints",
        )


def _is_label(key: object, value: object) -> bool:
    texts = isinstance(key, str) and isinstance(value, str)
    return texts and bool(LABEL_KEY.fullmatch(str(key)) and LABEL_VALUE.fullmatch(str(value)))


def _is_taint(taint: object) -> bool:
    if not isinstance(taint, dict) or not {"key", "effect"} <= set(taint) <= {"key", "value", "effect"}:
        return False
    return _is_label(taint["key"], taint.get("value", "")) and taint["effect"] in EFFECTS


def _plain(changed: Mapping[str, Any]) -> dict[str, Any]:
    """The values as an event keeps them; the name of a kubeconfig is no secret, its content never comes here."""
    return {
        key: value if isinstance(value, bool | int | dict | list) else str(value)
        for key, value in changed.items()
    }
