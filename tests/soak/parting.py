"""How teams leave in a walk: asked for, taken back, confirmed, restored, agreed to; the clock does the rest."""

from datetime import timedelta

from offboarding import actions as leaving_actions
from offboarding.models import Departure
from offboarding.preview import look, seen
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.stages import Stage
from tests.soak.walk import Walk


def wish_to_leave(walk: Walk) -> str:
    """A team's lead asks to leave a cluster, or the platform."""
    by, now = walk.random.choice(walk.town.askers), walk.town.time
    home = walk.town.home_of(by.teams[0])
    wish = leaving_actions.Wish(
        tenancies=[home.pk],
        is_whole=walk.random.random() < 0.5,
        leaves_at=now + timedelta(days=walk.random.choice([0, 0, 0, 1])),
        hold=walk.random.random() < 0.5,
        retention_days=walk.random.choice([1, 1, 1, 3]),
        reason="The project is over.",
    )
    leaving_actions.ask(by.teams[0], wish, by=by, now=now)
    return f"wish to leave: {home.namespace} of {home.cluster.name}"


def protect(walk: Walk) -> str:
    """A lead puts the protection of a place off, or on again."""
    row = walk.one_of(Tenancy.objects.filter(stage=Stage.HERE))
    on = not row.is_protected
    leaving.protect(row.pk, on=on, by=walk.town.leads[0])
    return "protect: " if on else "unprotect: "


def confirm(walk: Walk) -> str:
    """A lead confirms that a team leaves, having looked at what goes; sometimes without taking the protection off."""
    found = walk.one_of(
        Departure.objects.open().filter(confirmed_at=None).select_related("team")
    )
    if walk.random.random() < 0.9:
        for row in Tenancy.objects.filter(
            departures__departure=found, stage=Stage.HERE
        ).order_by("pk"):
            leaving.protect(row.pk, on=False, by=walk.town.leads[0])
    look(found, now=walk.town.now)
    leaving_actions.confirm(
        found.pk,
        name=found.team.name,
        seen_content=seen(found),
        by=walk.town.leads[1],
        now=walk.town.time,
    )
    return f"confirm a departure: of {found.team.name}"


def stay(walk: Walk) -> str:
    """A departure is taken back, or undone while everything is kept."""
    found = walk.one_of(Departure.objects.open())
    if found.confirmed_at is None:
        leaving_actions.withdraw(found.pk, by=found.asked_by, now=walk.town.time)
        return "withdraw a departure: "
    leaving_actions.restore(found.pk, by=found.asked_by, now=walk.town.time)
    return "restore: "


def agree(walk: Walk) -> str:
    """The day has come on which what is kept goes, and a lead lets so much be deleted at once."""
    rows = Departure.objects.under_way().filter(
        agreed_at=None, places__tenancy__stage=Stage.RETAINED
    )
    found = walk.one_of(rows.distinct())
    walk.town.later(
        seconds=max(0.0, (found.retained_until - walk.town.time).total_seconds())
    )
    leaving_actions.agree(found.pk, by=walk.town.leads[0], now=walk.town.time)
    return "agree to a departure: "


LEAVING = {wish_to_leave: 4, protect: 3, confirm: 25, stay: 3, agree: 40}
