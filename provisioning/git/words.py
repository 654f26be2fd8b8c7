"""What a commit says: which change of which tenancy, on whose request, and who brought it about."""

import re

from audit.events import Kind
from audit.models import Event
from fleet.models import Cluster
from provisioning.models import Tenancy

ODD = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+")
HELD = (Kind.ALLOCATION_ISSUED, Kind.ALLOCATION_RETURNED, Kind.ALLOCATION_EXPIRED)
DID = {
    Kind.ALLOCATION_ISSUED: "granted",
    Kind.ALLOCATION_RETURNED: "given back",
    Kind.ALLOCATION_EXPIRED: "ended",
}


def tenancy_message(tenancy: Tenancy) -> str:
    """The message for the newest generation of a tenancy: a title, and a line per fact."""
    changed = _changed(tenancy)
    held = _held(tenancy, changed) if changed else None
    what = "team left" if not tenancy.stands else f"generation {tenancy.generation}"
    lines = [
        f"Team: {tenancy.team.name}",
        f"Tenancy: {tenancy.pk}",
        f"Generation: {tenancy.generation}",
    ]
    reference = _reference(tenancy, changed, held) if changed else ""
    lines += [f"Request: {reference}"] if reference else []
    if held is not None:
        told = held.details
        lines.append(
            f"What: {told.get('gpus')} × {told.get('flavor')} {DID[Kind(held.kind)]}"
        )
    lines += [f"Asked by: {asked_by}"] if (asked_by := _asked_by(reference)) else []
    if changed is not None:
        lines.append(f"Brought about by: {changed.actor_name}")
    return _message(f"{tenancy.cluster.name}: {tenancy.namespace}, {what}", lines)


def shared_message(cluster: Cluster) -> str:
    """The message for what the teams of a cluster share."""
    return _message(
        f"{cluster.name}: what its teams share", [f"Cluster: {cluster.name}"]
    )


def _message(title: str, lines: list[str]) -> str:
    """Each line alone on its line, whatever names people gave."""
    return "\n".join([_plain(title), "", *(_plain(line) for line in lines)]) + "\n"


def _plain(text: str) -> str:
    return ODD.sub(" ", text).strip()


def _changed(tenancy: Tenancy) -> Event | None:
    events = Event.objects.about("tenancy", tenancy.pk).filter(
        kind=Kind.TENANCY_CHANGED
    )
    return (
        events.filter(details__generation=tenancy.generation).order_by("-seq").first()
    )


def _held(tenancy: Tenancy, changed: Event) -> Event | None:
    """The event about a holding that was written in the same transaction, a few numbers later."""
    near = Event.objects.filter(
        seq__gt=changed.seq,
        seq__lte=changed.seq + 5,
        team_id=tenancy.team_id,
        request_id=changed.request_id,
    )
    end = near.filter(kind=Kind.TENANCY_CHANGED).order_by("seq").first()
    if end is not None:
        near = near.filter(seq__lt=end.seq)
    return near.filter(kind__in=HELD).order_by("seq").first()


def _reference(tenancy: Tenancy, changed: Event, held: Event | None) -> str:
    """The request behind a change: named by the holding, or told of beside the change; empty without one."""
    if held is not None:
        return str(held.details.get("reference", ""))
    if not changed.request_id:
        return ""
    near = (
        Event.objects.filter(
            seq__gt=changed.seq - 5,
            seq__lte=changed.seq + 5,
            team_id=tenancy.team_id,
            request_id=changed.request_id,
            subject_type="request",
            kind__in=(Kind.REQUEST_SUBMITTED, Kind.REQUEST_APPROVED),
        )
        .order_by("-seq")
        .first()
    )
    return f"request-{near.subject_id}" if near else ""


def _asked_by(reference: str) -> str:
    """Who sent the request of this reference; empty when nobody did."""
    submitted = Event.objects.about("request", reference.rpartition("-")[2]).filter(
        kind=Kind.REQUEST_SUBMITTED
    )
    first = submitted.order_by("seq").first()
    return first.actor_name if first else ""
