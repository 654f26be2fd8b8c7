"""What people say about clusters and kinds of GPU: set field by field, checked, and as an event keeps it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from accounts.models import Team
from fleet import planned_maintenance
from fleet.models import Cluster
from fleet.names import OBJECT_NAME
from web.refusals import BadInput, Conflict

MOMENTS = ("announced_until", planned_maintenance.STARTS, planned_maintenance.ENDS)
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


def fill(
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


def save_new(row: models.Model, *, taken: str) -> None:
    """Insert a cluster or a kind of GPU; raises Conflict, with `taken` where its name is, and BadInput for no name."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if isinstance(row, Cluster):
            refuse_same_aks(row, error)
        if type(row).objects.filter(name=row.name).exists():  # type: ignore[attr-defined]
            raise Conflict(taken, code="name_taken", field="name") from error
        raise BadInput(
            "Use small letters, digits and dashes, beginning with a letter.",
            code="bad_name",
            field="name",
        ) from error


def refuse_same_aks(cluster: Cluster, error: IntegrityError) -> None:
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


def values_of(row: models.Model, fields: Iterable[str]) -> dict[str, Any]:
    """These fields of a row as they are now."""
    return {field: getattr(row, field) for field in fields}


def with_before(
    changed: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """What changed as an event keeps it, each with what it was; of certificates that they changed is enough."""
    was = plain({key: before[key] for key in changed if key not in LONG})
    return plain(changed) | {f"{key}_before": value for key, value in was.items()}


def plain(changed: Mapping[str, Any]) -> dict[str, Any]:
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
