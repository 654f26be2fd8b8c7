"""The mass-change brake: when so much differs at once, the cluster is not what it seems, and a person looks first.

An empty answer, the wrong cluster behind a kubeconfig or a clean-up that went too far look like drift of everybody.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count
from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message
from provisioning.drift.models import Drift
from provisioning.enqueue import enqueue_on_commit
from provisioning.models import Tenancy
from web.refusals import Conflict, NoRight

# A look at every tenancy of a cluster takes a minute or two; what drifted within this time drifted at once.
AT_ONCE = timedelta(minutes=10)
LEAST = 10
PERCENT = 5


def most(tenancies: int) -> int:
    """How many tenancies of a cluster may be repaired at once unasked: ten, or 5 percent where that is more."""
    return max(LEAST, tenancies * PERCENT // 100)


def is_on(cluster: Cluster) -> bool:
    """Whether repairs on the cluster have stopped, as stored now."""
    return Cluster.objects.filter(pk=cluster.pk, braked_at__isnull=False).exists()


def check(cluster: Cluster, *, now: datetime) -> bool:
    """Whether repairs on the cluster have stopped; stops them when more drifted at once than may be.

    Call it after what is to be repaired was stored, so that of workers at once at least one sees all of it.
    """
    if is_on(cluster):
        return True
    # Each tenancy counts once, however many of its objects differ.
    rows = Drift.objects.counting(cluster, since=now - AT_ONCE).order_by()
    drifted = rows.aggregate(tenancies=Count("tenancy", distinct=True))["tenancies"]
    return too_many(cluster, drifted, now=now)


def too_many(cluster: Cluster, drifted: int, *, now: datetime) -> bool:
    """Whether so many tenancies of the cluster are too many to repair unasked; stops repairs there if they are."""
    there = Tenancy.objects.present().filter(cluster=cluster, generation__gt=0).count()
    if drifted <= most(there):
        return False
    reason = f"{drifted} of {there} tenancies differ at once, more than the {most(there)} that are repaired unasked."
    _stop(cluster, reason=reason, now=now)
    return True


@transaction.atomic
def _stop(cluster: Cluster, *, reason: str, now: datetime) -> None:
    """Stop repairs, once however many workers find out; the lead who stopped it first keeps the reason."""
    if not Cluster.objects.filter(pk=cluster.pk, braked_at=None).update(
        braked_at=now, brake_reason=reason
    ):
        return
    message = Message(
        f"Repairs on {cluster.title} have stopped",
        f"{reason} Nothing that drifted is repaired until you let it.",
        action="Look at the cluster",
    )
    about, link = ("cluster", cluster.pk), reverse("cluster", args=[cluster.name])
    tell_leads(
        NoticeKind.CLUSTER_BRAKED, subject=about, link=link, message=message, now=now
    )
    record(
        Kind.CLUSTER_BRAKED,
        actor=PORTAL,
        subject=("cluster", cluster.pk),
        name=cluster.name,
        reason=reason,
    )


@transaction.atomic
def release(cluster_id: int, *, by: User, now: datetime) -> Cluster:
    """Let repairs go on; what is open now does not stop them again. Raises NoRight or Conflict."""
    if not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight("Platform leads let repairs go on.", code="not_a_platform_lead")
    cluster = Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)
    if cluster.braked_at is None:
        raise Conflict(
            f"Repairs on {cluster.title} have not stopped.", code="not_braked"
        )
    reason = cluster.brake_reason
    cluster.braked_at, cluster.brake_reason = None, ""
    cluster.save(update_fields=["braked_at", "brake_reason"])
    rows = Drift.objects.filter(tenancy__cluster=cluster)
    rows.filter(counts=True).update(counts=False)
    waiting = set(rows.open().values_list("tenancy_id", flat=True))
    Tenancy.objects.filter(pk__in=waiting).requeue(now)
    for tenancy_id in sorted(waiting):
        enqueue_on_commit(tenancy_id)
    record(
        Kind.CLUSTER_RELEASED,
        actor=by.as_actor(),
        subject=("cluster", cluster.pk),
        name=cluster.name,
        reason=reason,
    )
    return cluster
