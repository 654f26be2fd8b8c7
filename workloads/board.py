"""A team's work on every cluster, from the portal's own copy: no page view and no call asks a cluster.

What was explained is kept (workloads.kept_boards), and made anew once something has changed: a copy, what the portal
knows, or the time. So a view of work that has not changed reads no copy and explains nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Team, User
from accounts.roles import Permission
from fleet.names import flavor_key
from provisioning.models import Tenancy
from workloads.freshness import Seen
from workloads.gathering import explained
from workloads.gpu_use.busy import Busy
from workloads.gpu_use.work import Measured, busy_of_work, measured_in
from workloads.kept_boards import kept
from workloads.listing import State, Work
from workloads.team_context import context_of


@dataclass(frozen=True, kw_only=True)
class TeamWork:
    """Everything of one team: what runs first, then what waits and what ended last; `left_out` counts older ends.

    `states` are those of `work`, whose pieces are read as they are looked at. `held` are the GPUs that all of it has
    now. `tenancies` are those of the clusters that were read, `flavors` the keys of what these offer.
    """

    team: Team
    tenancies: Sequence[Tenancy]
    flavors: Collection[str]
    clusters: Sequence[Seen]
    states: Sequence[State]
    work: Sequence[Work]
    held: int
    left_out: int
    measured: Measured
    now: datetime

    def busy(self, one: Work) -> Busy | None:
        """How busy the GPUs of one of its pieces are; None for one that holds none on a node."""
        has_prometheus = any(
            seen.cluster.prometheus
            for seen in self.clusters
            if seen.cluster.name == one.cluster
        )
        return busy_of_work(
            one, self.measured, has_prometheus=has_prometheus, now=self.now
        )


def work_of_team(team: Team, *, by: User, now: datetime) -> TeamWork:
    """What runs and waits in a team's namespaces, whoever started it.

    Three queries, two more where something has changed since it was explained last, and one where GPUs are measured.
    """
    known = context_of(team, sees_all=by.may(Permission.SEE_ALL_TEAMS), now=now)
    board = kept(known, now=now, make=lambda: explained(known, now=now))
    return TeamWork(
        team=team,
        tenancies=known.tenancies,
        flavors={
            flavor_key(known.seen[one.cluster].cluster.name, one.name)
            for one in known.flavors
        },
        clusters=list(known.seen.values()),
        states=board.head.states,
        work=board.work(now),
        held=board.head.held,
        left_out=board.head.left_out,
        measured=measured_in(
            known.tenancies, [one.cluster for one in known.seen.values()]
        ),
        now=now,
    )
