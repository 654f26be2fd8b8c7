"""Whether a team may ask for something at a place: not where it leaves, nothing once it has left, no name twice.

Of a model no more than Azure has left.
"""

from accounts.models import Team
from allocations.changes import check_volume
from allocations.schedule import Provisioner
from approvals.requests.wanted import Wanted
from capacity.openai import quotas
from capacity.reservations import asking as reserving
from catalogue.models import provisioner_of
from catalogue.namespace import NamespaceSpec
from catalogue.notebook import NotebookSpec
from catalogue.openai import OpenAiSpec
from catalogue.reservation import ReservationSpec
from catalogue.volume import VolumeSpec
from fleet.models import Cluster
from notebooks.servers import actions as notebooks
from provisioning.desired.spec import Volume
from provisioning.models import Tenancy
from provisioning.stages import Stage
from web.refusals import Conflict


def check(wanted: Wanted) -> None:
    """Refuse what is asked by who leaves, or for a place that the team leaves, a volume twice, what cannot be made.

    Raises Conflict, and BadInput naming the field.
    """
    place = wanted.tenancy
    if wanted.team.leaves_platform_at is not None:
        raise Conflict(
            f"{wanted.team.name} leaves the platform: nothing new is granted to it.",
            code="is_leaving",
            field=wanted.spec.counted,
        )
    if place is not None and not place.is_here:
        raise Conflict(
            f"{wanted.team.name} leaves {place.cluster.title}: nothing new is granted there.",
            code="is_leaving",
            field=wanted.spec.counted,
        )
    if place is not None and isinstance(wanted.spec, VolumeSpec):
        check_volume(place, Volume.asked(wanted.spec.model_dump()))
    if (
        place is not None
        and wanted.flavor is not None
        and isinstance(wanted.spec, NotebookSpec)
    ):
        notebooks.check_offer(
            place, wanted.spec.profile, flavor=wanted.flavor.name, gpus=wanted.spec.gpus
        )
    if isinstance(wanted.spec, NamespaceSpec):
        _check_open(wanted.spec.cluster, wanted.team)
    check_quota(wanted)
    if isinstance(wanted.spec, ReservationSpec):
        reserving.check(reserving.Asked(**wanted.spec.place()), wanted.team)
    if (
        place is None
        and not isinstance(wanted.spec, NamespaceSpec)
        and has_left(wanted.team)
    ):
        raise Conflict(
            f"{wanted.team.name} has left or is leaving. A namespace on a cluster brings it back.",
            code="is_leaving",
            field="team",
        )


def _check_open(cluster: str, team: Team) -> None:
    """Refuse a namespace on a cluster that has closed, or was removed, since it was asked for."""
    if not Cluster.objects.open_to(team).filter(name=cluster).exists():
        raise Conflict(
            "This cluster takes no teams now. Choose another.",
            code="cluster_off",
            field="cluster",
        )


def check_quota(wanted: Wanted) -> None:
    """Refuse more of a model than Azure has left, where that is known; raises Conflict and BadInput."""
    spec = wanted.spec
    if (
        isinstance(spec, OpenAiSpec)
        and provisioner_of(wanted.offering) is Provisioner.OPENAI
    ):
        quotas.check(spec.region, spec.model, spec.deployment_type, wanted.count)


def left_of(wanted: Wanted) -> str:
    """What is left of a model before this ask, in a sentence; empty for anything else, and where it is not known."""
    spec = wanted.spec
    if (
        not isinstance(spec, OpenAiSpec)
        or provisioner_of(wanted.offering) is not Provisioner.OPENAI
    ):
        return ""
    offer = quotas.offer_in(spec.region, spec.model, spec.deployment_type)
    return f"{offer.sentence}." if offer is not None else ""


def has_left(team: Team) -> bool:
    """Whether the team was on clusters and is on none any more, but for what is going.

    It has not left a cluster that is written off: that has left it.
    """
    places = Tenancy.objects.filter(team=team, cluster__written_off_at=None)
    stages = set(places.order_by().values_list("stage", flat=True))
    return bool(stages) and Stage.HERE not in stages
