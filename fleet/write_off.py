"""Writing off a cluster that is gone for good: what stood there is let go of, as nobody can delete it any more."""

from datetime import datetime, timedelta

from django.db import transaction

from accounts.directory import freshness
from accounts.models import User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from fleet.clusters.actions import locked
from fleet.models import Cluster
from ui.amounts import moment
from web.refusals import BadInput, Conflict, NoRight, Refused

# What is only upgraded, moved or cut off is back before.
AWAY_FOR = timedelta(days=1)


@transaction.atomic
def write_off(cluster_id: int, *, name: str, by: User, now: datetime) -> Cluster:
    """Write a cluster off, having typed its name; its teams' places, GPUs and work there are then let go of by workers.

    Nothing is changed on the cluster. Its API server and its AKS cluster can be registered again, under another name.
    Writing it off again changes nothing. Raises NoRight, BadInput for another name, or what `why_not_written_off` says.
    """
    if not may_write_off(by):
        raise NoRight("Platform leads write clusters off.", code="not_a_platform_lead")
    freshness.check(by, now=now)
    cluster = locked(cluster_id)
    if cluster.written_off_at is not None:
        return cluster
    refusal = why_not_written_off(cluster, now=now)
    if refusal is not None:
        raise refusal
    if name.strip() != cluster.name:
        raise BadInput(
            f"Type the cluster’s name as it is written here: {cluster.name}.",
            code="wrong_name",
            field="name",
        )
    identity, azure_id = cluster.identity, cluster.azure_id
    cluster.written_off_at = now
    # What it was known by is free for another one, and nobody has to decide anything about it any more.
    cluster.identity = cluster.identity_found = cluster.azure_id = ""
    cluster.azure_message = ""
    cluster.braked_at, cluster.brake_reason = None, ""
    cluster.capacity_doubt, cluster.doubted_looks = "", 0
    cluster.save(
        update_fields=[
            "written_off_at",
            "identity",
            "identity_found",
            "azure_id",
            "azure_message",
            "braked_at",
            "brake_reason",
            "capacity_doubt",
            "doubted_looks",
        ]
    )
    cluster.flavors.update(is_offered=False)
    record(
        Kind.CLUSTER_WRITTEN_OFF,
        actor=by.as_actor(),
        subject=("cluster", cluster.pk),
        name=cluster.name,
        away_since=cluster.away_since,
        identity=identity,
        azure_id=azure_id,
    )
    return cluster


def may_write_off(by: User) -> bool:
    """Whether this person may: it ends what teams have there, and what is known of the cluster."""
    return by.may(Permission.MANAGE_CLUSTERS) and by.may(Permission.REMOVE_TEAMS)


def why_not_written_off(cluster: Cluster, *, now: datetime) -> Refused | None:
    """Why a cluster cannot be written off yet: in use, answering, away for less than a day, or paid for in Azure.

    None when it can be. One of which the portal sees the repository alone is believed to be gone.
    """
    if cluster.enabled:
        return Conflict(
            f"{cluster.title} is in use. Take it out of use first, so that nobody asks for it any more.",
            code="in_use",
        )
    reserved = [
        flavor.kind
        for flavor in cluster.flavors.order_by("name")
        if flavor.reservations.in_azure().exists()
    ]
    if reserved:
        return Conflict(
            f"Azure keeps machines for {' and '.join(reserved)} here, which cost what they did. Give them back first.",
            code="machines_reserved",
        )
    if not cluster.is_observed:
        return None
    if cluster.has_answered:
        return Conflict(
            f"{cluster.title} answers, though not to everything, so what is there may run on.",
            code="not_away",
        )
    if cluster.away_since is None:
        return Conflict(
            f"{cluster.title} was not found away. Let its teams leave it instead.",
            code="not_away",
        )
    if cluster.away_since > now - AWAY_FOR:
        return Conflict(
            f"{cluster.title} may come back: it can be written off once it has been away for a day, from "
            f"{moment(cluster.away_since + AWAY_FOR, now)}.",
            code="may_come_back",
        )
    return None
