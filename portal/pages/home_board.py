"""What home shows: what needs the person, what waits and why, what is held and ends, and asking again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from django.db.models import (
    Case,
    Count,
    Exists,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
    Window,
)
from django.urls import reverse

from accounts.cost_centres.models import is_confirmed
from accounts.models import Delegation, DirectoryBrake, Membership, Team, User
from accounts.roles import Permission
from allocations.models import Allocation, Brake
from approvals.decisions import route_words
from approvals.decisions.empty_seats import EmptySeat, empty_seats, vacant
from approvals.decisions.routing import open_step
from approvals.fulfilment.page import ToDo, to_do
from approvals.models import Request
from approvals.requests.links import again_link
from approvals.requests.page import closed_line
from approvals.requests.presenting import titled
from approvals.requests.prices import price_words
from approvals.stand_ins.actions import period
from approvals.states import State
from catalogue.models import switched_off
from fleet.models import Cluster, Flavor, announcing
from fleet.presenting import AWAY_FOR_TEAMS, how_away
from notebooks.models import NotebookServer
from notebooks.servers.models import NotebookServerQuerySet
from offboarding.models import Departure
from offboarding.page import OpenDeparture, to_confirm
from policy.models import PolicyDraft
from portal.models import LATE_AFTER, Pulse
from portal.pages.team_board import Holding, holding
from provisioning.models import Drift, Tenancy
from ui.amounts import moment
from ui.parts import Link, Wait
from workloads.notebook_pages.page import Line, line_of, may
from workloads.runs.models import Run, RunQuerySet
from workloads.runs.pages.page import RunLine
from workloads.runs.pages.page import line_of as line_of_run

# What stands where there is nothing yet, by what can be done about it.
EMPTY_WORDS = {
    "ask": (
        "Say which kind, how many and until when. "
        "Small asks are decided at once and stand on the cluster seconds later."
    ),
    "look": (
        "Their requests, what they hold and what it costs, the clusters, and who did what. "
        "You change nothing by looking."
    ),
    "first": (
        "Four short steps: who, where, what to start with, and a look at everything before it is created. "
        "About a minute."
    ),
}
MOST_TO_DECIDE, MOST_WAITING, MOST_HELD, MOST_AGAIN, MOST_BROKEN = 5, 5, 8, 3, 5
MOST_OWN, MOST_RUNS = 20, 5


class ToDecide(TypedDict):
    """A request that waits for this person; `in_all` is how many do."""

    href: str
    title: str
    by: str
    since: datetime
    price: str
    in_all: int


class Held(TypedDict):
    """Something that a team of theirs holds."""

    team: Team
    line: Holding


class Again(TypedDict):
    """Something that was asked for, to be asked for again."""

    title: str
    figure: str
    text: str
    href: str


class Broken(TypedDict):
    """Something that does not work or has stopped, and where to look at it; empty where no page says more."""

    what: str
    why: str
    href: str
    since: datetime | None


class Announced(TypedDict):
    """What a cluster's teams are told about it."""

    title: str
    text: str


class Home(TypedDict):
    """The home page."""

    decide: Sequence[ToDecide]
    more_to_decide: int
    decides: bool
    tasks: Sequence[ToDo]
    waiting: Sequence[Wait]
    more_waiting: int
    led: Sequence[Wait]
    more_led: int
    more_held: int
    held: Sequence[Held]
    runs: Sequence[RunLine]
    more_runs: Link | None
    notebook: Line | None
    again: Sequence[Again]
    leaving: Sequence[OpenDeparture]
    broken: Sequence[Broken]
    announced: Sequence[Announced]
    has_team: bool
    sees_all: bool
    live: str
    ask: Link
    look: Link
    first: Link
    empty_words: Mapping[str, str]


def board(user: User, *, decides: bool, now: datetime) -> Home:
    """The page's context; parts that are empty are left out by the template."""
    seen = kinds_present(user, now=now)
    leaving, brakes, unanswered, failed = stopped(user, seen, now=now)
    clusters = clusters_of(user, now=now)
    own = asked_by(user)
    waits = [row for row in own if row.state == State.WAITING]
    held = list(
        Allocation.objects.of_member(user)
        .granted()
        .described()
        .annotate(in_all=Window(Count("pk")))
        .order_by("until")[:MOST_HELD]
    )
    decide = to_decide(user, now=now) if decides else []
    led = list(asked_in_led_teams(user)[:MOST_WAITING]) if seen["led"] else []
    return {
        "decide": decide,
        "more_to_decide": decide[0]["in_all"] - len(decide) if decide else 0,
        "decides": decides,
        "tasks": to_do(user) if user.may(Permission.DECIDE_AS_PLATFORM) else [],
        "waiting": [
            *invitations(user, now=now),
            *unanswered,
            *(waiting(row, mine=True, now=now) for row in waits[:MOST_WAITING]),
        ],
        "more_waiting": _in_all(waits) - len(waits[:MOST_WAITING]),
        "led": [waiting(row, mine=False, now=now) for row in led],
        "more_led": _in_all(led) - len(led),
        "more_held": _in_all(held) - len(held),
        "held": [{"team": row.team, "line": holding(row, now=now)} for row in held],
        **own_runs(user, seen, now=now),
        "notebook": last_notebook(user, now=now) if seen["has_notebook"] else None,
        "again": again(
            sorted(own, key=lambda row: row.created_at, reverse=True), now=now
        ),
        "leaving": leaving,
        "broken": [*brakes, *broken(user, clusters, failed)],
        "announced": [
            {"title": f"About {row.title}", "text": text}
            for row in clusters
            if (text := row.announces(now))
        ],
        "has_team": bool(user.team_ids),
        "sees_all": user.may(Permission.SEE_ALL_TEAMS),
        "live": " ".join(f"team-{pk}" for pk in sorted(user.team_ids))
        + " clusters requests",
        "ask": {"label": "Ask for GPUs", "href": reverse("request-new")},
        "look": {"label": "Open the audit log", "href": reverse("audit")},
        "first": {"label": "Bring a team on board", "href": reverse("onboard")},
        "empty_words": EMPTY_WORDS,
    }


def asked_by(user: User) -> list[Request]:
    """A person's last requests: those that ask them something, then those that wait, then the others, the newest first.

    Each with `in_all`, how many of theirs wait, and `is_off`, whether its offering is switched off.
    """
    rows = Request.objects.of_member(user).filter(requester=user)
    waits = Q(state=State.WAITING)
    first = Case(
        When(waits & Q(turn=Request.Turn.REQUESTER), then=0),
        When(waits, then=1),
        default=2,
    )
    shown = rows.select_related(
        "team", "flavor__cluster", "tenancy__cluster"
    ).prefetch_related("steps")
    counted = shown.annotate(
        in_all=Window(Count("pk", filter=waits)), is_off=Exists(switched_off())
    )
    return list(counted.order_by(first, "-created_at", "-id")[:MOST_OWN])


def _in_all(rows: Sequence[Any]) -> int:
    """How many there are of rows of which these are the first; each was counted with all of them."""
    return rows[0].in_all if rows else 0


def to_decide(user: User, *, now: datetime) -> list[ToDecide]:
    """The oldest requests that wait for this person, with their age, and of how many they are."""
    rows = (
        Request.objects.awaiting(user, now)
        .without_question()
        .select_related("team", "flavor__cluster", "requester")
    )
    rows = rows.annotate(in_all=Window(Count("pk")))
    return [
        {
            "href": reverse("approval", args=[row.pk]),
            "title": f"{titled(row)} for {row.team.name}",
            "by": row.requester.name,
            "since": row.created_at,
            "price": price_words(row, now=now),
            "in_all": getattr(row, "in_all", 0),
        }
        for row in rows.order_by("created_at")[:MOST_TO_DECIDE]
    ]


def invitations(user: User, *, now: datetime) -> list[Wait]:
    """Who asks this person to stand in, as waiting lines; no query where the session found nobody."""
    if not user.is_invited:
        return []
    rows = (
        Delegation.objects.invited(now)
        .filter(to=user)
        .select_related("giver")
        .order_by("starts_at", "pk")
    )
    return [
        {
            "kind": "change",
            "what": f"{row.giver.name} asks you to stand in {period(row, now)}",
            "since": row.created_at,
            "advice": "It counts once you accept.",
            "action": {"label": "Accept or decline", "href": reverse("stand-in")},
        }
        for row in rows[:MOST_WAITING]
    ]


def drafts(user: User) -> list[Wait]:
    """Drafts of the policy that somebody else has handed in, for who may put them in force."""
    rows = PolicyDraft.objects.waiting_for(user).select_related("author")
    return [
        {
            "kind": "change",
            "what": f"A draft of the policy by {row.author.name} waits for you to put it in force",
            "since": row.handed_in_at,
            "advice": "Two people change the policy: nothing of it counts before.",
            "action": {"label": "Open", "href": reverse("policy-draft", args=[row.pk])},
        }
        for row in rows.order_by("handed_in_at", "pk")[:MOST_WAITING]
    ]


def asked_in_led_teams(user: User) -> QuerySet[Request]:
    """What others wait for in the teams that this person leads, the oldest first.

    Each with `in_all`, how many there are, and `is_orphaned`, whether who asked may not ask for it any more.
    """
    leads = user.memberships.filter(part=Membership.Part.LEAD)
    rows = Request.objects.waiting().filter(team__in=leads.values("team"))
    shown = rows.exclude(requester=user).select_related(
        "team", "requester", "flavor__cluster", "tenancy__cluster"
    )
    counted = shown.annotate(in_all=Window(Count("pk")), is_off=Exists(switched_off()))
    return (
        counted.with_orphaned().prefetch_related("steps").order_by("created_at", "pk")
    )


def waiting(row: Request, *, mine: bool, now: datetime) -> Wait:
    """Why a request waits, as a waiting line: one of one's own, or of others in a team one leads, with who asked.

    `row` comes with its steps.
    """
    asked = f"{titled(row)} for {row.team.name}"
    what = asked if mine else f"{asked}, asked for by {row.requester.name},"
    href = reverse("request", args=[row.pk])
    if not mine and (orphaned := row.why_orphaned):
        return {
            "kind": "change",
            "what": f"{what} cannot be granted",
            "since": None,
            "advice": f"{orphaned}. Withdraw it: what it sets aside is free again.",
            "action": {"label": "Open", "href": href},
        }
    if row.turn == Request.Turn.REQUESTER:
        return {
            "kind": "change" if mine else "wait",
            "what": f"{asked}: a question for {'you' if mine else row.requester.name}",
            "since": row.updated_at,
            "advice": f"Unanswered, it lapses on {moment(row.lapses, row.updated_at)}.",
            "action": {"label": "Answer" if mine else "Open", "href": href},
        }
    if because := row.why_not_granted(now):
        return {
            "kind": "change" if mine else "wait",
            "what": f"{what} would be granted, but something stands in its way",
            "since": None,
            "advice": because if mine else f"{row.requester.name} is told: {because}",
            "action": {"label": "Open", "href": href},
        }
    if closed := row.why_closed:
        line = closed_line(
            f"{what} waits, and nobody can approve it", closed, mine=mine
        )
        return {**line, "action": {"label": "Open", "href": href}}
    step = open_step(row)
    who = step.words if step is not None else "somebody"
    return {
        "kind": "wait",
        "what": f"{what} waits for {who} to decide",
        # Each step has waited since the one before it was done.
        "since": step.opened_at if step is not None else row.created_at,
        "due": route_words.due(step, row) if step is not None else None,
        "action": {"label": "Open", "href": href},
    }


def again(own: Sequence[Request], *, now: datetime) -> list[Again]:
    """The last different asks, ready to be made again for as long."""
    found: dict[tuple[str, int | None, int, int | None], Again] = {}
    for row in own:
        key = (row.offering, row.flavor_id, row.gpus, row.tenancy_id)
        if (
            row.flavor is None
            or key in found
            or not _is_to_be_had(row, row.flavor)
            or len(found) == MOST_AGAIN
        ):
            continue
        days = max(round(row.duration.total_seconds() / 86400), 1)
        cluster = row.flavor.cluster
        # Its GPUs can be asked for, but would be made only once it answers.
        so_far = how_away(cluster) if cluster.is_away else row.flavor.free_words
        found[key] = {
            "title": row.name(),
            "figure": "1 day" if days == 1 else f"{days} days",
            "text": f"{row.team.name} · {cluster.title} · {so_far}",
            "href": again_link(row, now=now),
        }
    return list(found.values())


def _is_to_be_had(row: Request, flavor: Flavor) -> bool:
    """Whether the same would be taken again: the team is there still, and what it asked for is on offer to it."""
    if row.tenancy is None or not row.tenancy.is_here or getattr(row, "is_off", False):
        return False
    owners = {flavor.dedicated_to_id, flavor.cluster.dedicated_to_id}
    is_for_team = owners <= {None, row.team_id}
    return is_for_team and flavor.is_offered and flavor.cluster.enabled


class OwnRuns(TypedDict):
    """What somebody's runs are at, and where the list of more of them stands."""

    runs: Sequence[RunLine]
    more_runs: Link | None


def runs_of(user: User, *, now: datetime) -> RunQuerySet:
    """The person's runs that have not ended, or did within a day, the newest first."""
    return Run.objects.of_member(user).filter(requester=user).recent(now)


def own_runs(user: User, seen: Mapping[str, Any], *, now: datetime) -> OwnRuns:
    """The person's runs as home shows them, where `seen` has any; of more than that, it leads to all of a team's."""
    rows = runs_of(user, now=now).listed()
    found = list(rows[: MOST_RUNS + 1]) if seen["has_runs"] else []
    more: Link | None = None
    if len(found) > MOST_RUNS:
        href = reverse("runs", args=[found[-1].team.slug])
        more = {"label": f"All runs of {found[-1].team.name}", "href": href}
    return {
        "runs": [line_of_run(row, now) for row in found[:MOST_RUNS]],
        "more_runs": more,
    }


def notebooks_of(user: User) -> NotebookServerQuerySet:
    """What the person launched in teams of theirs."""
    return NotebookServer.objects.of_member(user).filter(owner=user)


def last_notebook(user: User, *, now: datetime) -> Line | None:
    """The notebook that somebody launched last in a team of theirs, with what can be done with it; None without one."""
    found = (
        notebooks_of(user)
        .described()
        .select_related("tenancy__cluster__hub")
        .order_by("-launched_at", "-pk")
        .first()
    )
    if found is None:
        return None
    return replace(
        line_of(found, may(found, user, leads=()), now), team=found.team.name
    )


class Stopped(NamedTuple):
    """What stands still until somebody acts."""

    leaving: list[OpenDeparture]
    brakes: list[Broken]
    unanswered: list[Wait]
    failed: list[Tenancy]


def kinds_present(user: User, *, now: datetime) -> Mapping[str, Any]:
    """What there is to look for, in one query: what is not there is not asked for by itself.

    Each says whether there is any; `pulse` is when a worker worked last.
    """
    asked: dict[str, Any] = {
        "pulse": Subquery(Pulse.objects.values("at")[:1]),
        "failed": Exists(unfinished_places(user)),
        "has_runs": Exists(runs_of(user, now=now)),
        "has_notebook": Exists(notebooks_of(user)),
        "led": Exists(asked_in_led_teams(user).order_by()),
    }
    if user.may(Permission.ACTIVATE_POLICY):
        asked["drafts"] = Exists(PolicyDraft.objects.waiting_for(user))
    if user.may(Permission.REMOVE_TEAMS) and user.may(Permission.MANAGE_BUDGETS):
        asked |= {
            "leaving": Exists(Departure.objects.open().filter(confirmed_at=None)),
            "ends": Exists(Brake.objects.open()),
            "directory": Exists(DirectoryBrake.objects.open()),
            "vacant": Exists(vacant()),
            "orphaned": Exists(without_lead()),
            "unconfirmed": Exists(spending_unconfirmed()),
        }
    rows: Any = User.objects.filter(pk=user.pk).values(**asked)
    found: Mapping[str, Any] = rows.get()
    return found


def unfinished_places(user: User) -> QuerySet[Tenancy]:
    """Places of teams that were tried and do not stand."""
    was_tried = Q(last_looked_at__isnull=False) | Q(parked_at__isnull=False)
    return Tenancy.objects.visible_to(user).filter(was_tried, is_true=False)


def stopped(user: User, seen: Mapping[str, Any], *, now: datetime) -> Stopped:
    """Teams that leave, what is broken, drafts of the policy, and places that could not be set up.

    `seen` is `kinds_present`. Everybody is told of workers; platform leads of ends held back, the directory, seats and
    teams without people.
    """
    brakes = _idle_workers(seen["pulse"], now)
    brakes += [
        {
            "what": "The directory takes nothing from anybody",
            "why": row.reason,
            "href": reverse("directory"),
            "since": row.at,
        }
        for row in (DirectoryBrake.objects.open() if seen.get("directory") else [])
    ]
    brakes += [
        {
            "what": f"{row.due} ends are held back",
            "why": "So many at one moment may be a wrong clock.",
            "href": reverse("ends-held-back"),
            "since": row.clock,
        }
        for row in (Brake.objects.open() if seen.get("ends") else [])
    ]
    if seen.get("vacant"):
        brakes += seats_to_fill()
    if seen.get("orphaned"):
        brakes += map(
            _orphan_line,
            without_lead()
            .select_related("owner", "created_by")
            .order_by("name")[:MOST_BROKEN],
        )
    places = unfinished_places(user).select_related("team", "cluster")
    tried = places[:50] if seen["failed"] else []
    return Stopped(
        to_confirm(now=now) if seen.get("leaving") else [],
        brakes,
        [
            *(drafts(user) if seen.get("drafts") else []),
            *(cost_centres() if seen.get("unconfirmed") else []),
        ],
        [row for row in tried if row.has_failed],
    )


def spending_unconfirmed() -> QuerySet[Team]:
    """Teams that are somewhere, with a cost centre that nobody has confirmed."""
    here = Tenancy.objects.present().filter(team=OuterRef("pk"))
    return Team.objects.filter(Exists(here), ~is_confirmed("cost_centre"))


def cost_centres() -> list[Wait]:
    """Cost centres to confirm, the newest team first: until then people decide what such a team spends."""
    return [
        {
            "kind": "change",
            "what": f"{team.name} spends on {team.cost_centre}, which nobody has confirmed",
            "since": team.created_at,
            "advice": "Until somebody does, people decide whatever it asks for that costs.",
            "action": {"label": "Confirm it", "href": reverse("cost-centres")},
        }
        for team in spending_unconfirmed().order_by("-created_at")[:MOST_WAITING]
    ]


def without_lead() -> QuerySet[Team]:
    """Teams that hold something and that nobody with an account leads any more; whether anybody is in it, too."""
    held = Allocation.objects.live().filter(team=OuterRef("pk"))
    members = Membership.objects.of_people()
    people = members.filter(team=OuterRef("pk"), user__is_active=True)
    leads = people.filter(part=Membership.Part.LEAD)
    return Team.objects.filter(Exists(held), ~Exists(leads)).annotate(
        has_people=Exists(people)
    )


def _orphan_line(team: Team) -> Broken:
    if getattr(team, "has_people", False):
        return {
            "what": f"Nobody leads {team.name} any more",
            "why": f"Neither {team.accountable.name}, who answers for it, nor a team lead is of it. Choose an owner.",
            "href": reverse("team-settings", args=[team.slug]),
            "since": None,
        }
    return {
        "what": f"Nobody is in {team.name} any more",
        "why": f"It holds what its people asked for, and no member of the group {team.entra_group_name} has an account "
        "here. Give it another group, or have it leave.",
        "href": reverse("team", args=[team.slug]),
        "since": None,
    }


def seats_to_fill() -> list[Broken]:
    """Seats in which nobody is known and that requests wait for; for platform leads, who can fill them."""
    return [
        {
            "what": f"Nobody is known as {seat.words}",
            "why": _waits_for_it(seat),
            "href": reverse("request", args=[seat.requests[0].pk]),
            "since": seat.since,
        }
        for seat in empty_seats()[:MOST_BROKEN]
    ]


def _waits_for_it(seat: EmptySeat) -> str:
    first, others = seat.requests[0], len(seat.requests) - 1
    waits = f"{first.name()} for {first.team.name} (request {first.pk})"
    if others:
        waits += f" and {others} other request{'' if others == 1 else 's'}"
    verb = "wait" if others else "waits"
    return f"{waits} {verb} for this seat. Give somebody its role or group in Entra ID, or change the policy"


def clusters_of(user: User, *, now: datetime) -> list[Cluster]:
    """Clusters that do not work, are not repaired or announce something, as far as it concerns this person.

    Of platform leads those with drift that waits for them have `waits`, and all how much of it there is.
    """
    # One that takes no teams and has none is nobody's trouble.
    clusters = Cluster.objects.looked_after()
    if not user.may(Permission.MANAGE_CLUSTERS):
        here = Tenancy.objects.present().filter(team__in=user.team_ids)
        return list(
            clusters.filter(
                Q(reachable=False) | announcing(now), tenancies__in=here
            ).distinct()
        )
    waits = Exists(
        Drift.objects.waiting_for_lead().filter(tenancy__cluster=OuterRef("pk"))
    )
    # Chosen here: SQLite cannot look into a list of parts, and there are few clusters.
    return [
        row
        for row in clusters.counted().annotate(waits=waits)
        if row.is_away
        or row.broken_parts
        or row.braked_at
        or row.waits  # type: ignore[attr-defined]
        or row.announces(now)
    ]


def broken(
    user: User, clusters: Iterable[Cluster], failed: Iterable[Tenancy]
) -> list[Broken]:
    """Clusters that do not answer or are not repaired, and places that could not be set up, as far as one sees them."""
    manages = user.may(Permission.MANAGE_CLUSTERS)
    troubled = [
        row
        for row in clusters
        if row.is_away
        or (
            manages
            and (row.broken_parts or row.braked_at or getattr(row, "waits", False))
        )
    ]
    lines = [_cluster_line(row, manages=manages) for row in troubled]
    return [*lines, *map(_place_line, failed)][:MOST_BROKEN]


def _idle_workers(at: datetime | None, now: datetime) -> list[Broken]:
    """That no worker works, once one has: then nothing is set up, ended or told."""
    if at is None or at > now - LATE_AFTER:
        return []
    return [
        {
            "what": "The portal’s workers stand still",
            "why": "What is asked for is kept, and done once an operator has them work again; until then nothing is "
            "set up, nothing ends, and nobody is told",
            "href": "",
            "since": at,
        }
    ]


def _place_line(row: Tenancy) -> Broken:
    return {
        "what": f"{row.team.name} could not be set up on {row.cluster.title}",
        "why": row.ready["message"],
        "href": reverse("team", args=[row.team.slug]),
        "since": datetime.fromisoformat(row.ready["since"]),
    }


def _cluster_line(row: Cluster, *, manages: bool) -> Broken:
    page = reverse("cluster", args=[row.name])
    if row.is_away:
        return {
            "what": f"{row.title} {how_away(row)}",
            # What a client library says helps whom it falls to mend; a team asks what becomes of its work.
            "why": row.message if manages else AWAY_FOR_TEAMS,
            "href": page,
            "since": row.away_since,
        }
    if row.broken_parts:
        part = row.broken_parts[0]
        return {
            "what": f"{row.title}: {part.part} does not work",
            "why": part.words,
            "href": page,
            "since": part.since,
        }
    if row.braked_at is None:
        number: int = getattr(row, "drifted")  # noqa: B009
        return {
            "what": f"{number} object{'' if number == 1 else 's'} on {row.title} changed from elsewhere",
            "why": "Nothing is written until a platform lead decides.",
            "href": f"{page}#drift",
            "since": None,
        }
    return {
        "what": f"Repairs on {row.title} have stopped",
        "why": row.brake_reason,
        "href": f"{page}#drift",
        "since": row.braked_at,
    }
