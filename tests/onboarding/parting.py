"""A team that leaves a real place on a served cluster, step by step, by a clock that the test moves."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from accounts.models import User
from accounts.roles import Role
from offboarding import actions
from offboarding.models import Departure
from offboarding.preview import seen
from offboarding.sweep import sweep
from provisioning import leaving
from provisioning.models import Tenancy
from tests import factories
from tests.provisioning.conftest import Place
from tests.scene import NOW, Scene

DAY = timedelta(days=1)


@dataclass
class Parting:
    """Vision on a cluster with Ada who leads it, Priya and Marcus who are platform leads, and Mallory, a stranger."""

    place: Place
    ada: User
    priya: User
    marcus: User
    mallory: User

    @property
    def tenancy(self) -> Tenancy:
        """The team's place as it is stored now."""
        return self.place.row

    def wish(self, **changes: Any) -> actions.Wish:
        """To leave this cluster at once, kept for 30 days."""
        usual: dict[str, Any] = {
            "tenancies": [self.place.tenancy.pk],
            "is_whole": False,
            "leaves_at": self.place.time,
            "hold": False,
            "retention_days": 30,
            "reason": "The project is over.",
        }
        return actions.Wish(**(usual | changes))

    def ask(self, by: User | None = None, **changes: Any) -> Departure:
        """Ask for it; Ada does unless somebody else is named."""
        return actions.ask(
            self.tenancy.team,
            self.wish(**changes),
            by=by or self.ada,
            now=self.place.time,
        )

    def unprotect(self) -> None:
        """Priya takes the protection off."""
        leaving.protect(self.place.tenancy.pk, on=False, by=self.priya)

    def confirm(
        self, departure: Departure, by: User | None = None, **changes: Any
    ) -> Departure:
        """Confirm with the name typed and what is there now; Priya does unless somebody else is named."""
        said = {
            "name": "Vision",
            "seen_content": seen(Departure.objects.get(pk=departure.pk)),
        } | changes
        return actions.confirm(
            departure.pk, by=by or self.priya, now=self.place.time, **said
        )

    def go(self, **changes: Any) -> Departure:
        """Asked, unprotected and confirmed."""
        departure = self.ask(**changes)
        self.unprotect()
        return self.confirm(departure)

    def pass_by(self, **span: float) -> None:
        """Some time passes; then the clock's task and a worker have their turn."""
        self.place.later(**span)
        sweep(now=self.place.time)
        self.place.reconcile()

    def stopped(self) -> None:
        """Work has stopped on the cluster by now, as a worker would find, where there is none."""
        kept = Tenancy.objects.filter(pk=self.place.tenancy.pk, drained_at=None)
        kept.update(drained_at=self.place.time)

    def until_gone(self, departure: Departure) -> Departure:
        """Turns of clock and worker until the departure is over."""
        for _ in range(40):
            self.pass_by(seconds=61)
            self.place.kubernetes.terminate()
            found = Departure.objects.get(pk=departure.pk)
            if found.ended_at is not None:
                return found
        raise AssertionError(self.tenancy.ready["message"])


def parting(place: Place) -> Parting:
    """The team is on the cluster and everything is true there."""
    place.tenancy.team.memberships.filter(user=place.ada).update(part="lead")
    place.reconcile()
    return Parting(
        place=place,
        ada=place.ada,
        priya=factories.person("Priya Raman", Role.PLATFORM_LEAD),
        marcus=factories.person("Marcus Weber", Role.PLATFORM_LEAD),
        mallory=factories.person("Mallory Finch"),
    )


def on_paper(scene: Scene) -> Parting:
    """The same in the database alone: what needs no look at a cluster."""
    scene.team.memberships.filter(user=scene.ada).update(part="lead")
    nothing: Any = None
    place = Place(
        nothing,
        scene.flavor.cluster,
        scene.flavor,
        scene.flavor,
        scene.ada,
        scene.tenancy,
        NOW,
    )
    return Parting(place, scene.ada, scene.priya, scene.marcus, scene.mallory)
