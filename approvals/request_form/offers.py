"""What a person's teams can ask for on clusters: where they are, and the kinds of GPU that are offered there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accounts.models import User
from approvals.requests.presenting import with_cost
from fleet.models import Flavor
from provisioning.desired.isolation import is_for
from provisioning.models import Tenancy


def _is_at(flavor: Flavor, tenancy: Tenancy) -> bool:
    return flavor.cluster_id == tenancy.cluster_id and is_for(flavor, tenancy)


@dataclass(frozen=True)
class Offers:
    """The tenancies of a person's teams, and the flavors that are offered on their clusters, cheapest first."""

    tenancies: Sequence[Tenancy]
    flavors: Sequence[Flavor]

    @classmethod
    def of(cls, user: User) -> "Offers":
        """Read in two queries."""
        places = with_cost(Tenancy.objects.here().of_member(user))
        tenancies = list(places.select_related("team", "cluster", "project"))
        clusters = {tenancy.cluster_id for tenancy in tenancies}
        flavors = (
            Flavor.objects.offered()
            .filter(cluster__in=clusters)
            .select_related("cluster")
        )
        rows = flavors.order_by("cluster__name", "price_per_gpu_hour", "name")
        return cls(
            tenancies,
            [flavor for flavor in rows if any(_is_at(flavor, t) for t in tenancies)],
        )

    def tenancy(self, team: str, flavor: Flavor) -> Tenancy | None:
        """The first tenancy of a team (its slug) where a kind of GPU is; None where it has none."""
        there = (
            t for t in self.tenancies if team in ("", t.team.slug) and _is_at(flavor, t)
        )
        return next(there, None)

    def of_team(self, slug: str) -> "Offers":
        """What is for this team; everything, where nothing is for it."""
        own = [tenancy for tenancy in self.tenancies if tenancy.team.slug == slug]
        flavors = [
            flavor
            for flavor in self.flavors
            if any(_is_at(flavor, tenancy) for tenancy in own)
        ]
        return replace(self, tenancies=own, flavors=flavors) if flavors else self
