"""How far apart a team is from the others: which clusters and which kinds of GPU are for whom."""

from django.db.models import Q, QuerySet

from accounts.models import Team
from fleet.models import Flavor, FlavorQuerySet
from provisioning.models import Isolation, Tenancy


def is_for(flavor: Flavor, tenancy: Tenancy) -> bool:
    """Whether a flavor of the tenancy's cluster may stand in its queue.

    Somebody else's own nodes never do; a team with nodes of its own works on those alone.
    """
    if flavor.dedicated_to_id is None:
        return tenancy.isolation != Isolation.NODE_POOL
    return flavor.dedicated_to_id == tenancy.team_id


def flavors_for(tenancy: Tenancy) -> QuerySet[Flavor]:
    """The flavors of the tenancy's cluster for which `is_for` holds, in no order."""
    own = Q(dedicated_to=tenancy.team_id)
    rule = (
        own if tenancy.isolation == Isolation.NODE_POOL else own | Q(dedicated_to=None)
    )
    return Flavor.objects.filter(rule, cluster=tenancy.cluster_id)


def flavors_of_team(team: Team) -> FlavorQuerySet:
    """The flavors of all clusters that this team may have, wherever it is."""
    pools = (
        Tenancy.objects.filter(team=team, isolation=Isolation.NODE_POOL)
        .order_by()
        .values("cluster")
    )
    return Flavor.objects.filter(
        Q(dedicated_to=team) | Q(Q(dedicated_to=None), ~Q(cluster__in=pools))
    )
