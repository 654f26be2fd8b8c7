"""What the pages about notebook servers show: a server's state, figures and story, and the lists of a team."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlencode

from django.db.models import Case, When
from django.urls import reverse

from accounts.models import Team, User
from allocations.ends.carrying import Uncarried
from fleet.maintenance import save_before_words
from notebooks.hubs.models import Hub
from notebooks.models import NotebookServer
from notebooks.profile_desk.kept import offered_instead, retired_words
from notebooks.profiles.idle import unfollowed_since
from notebooks.profiles.priority import goes_first_words
from notebooks.profiles.states import State as ProfileState
from notebooks.servers import actions
from notebooks.servers.ending import use_of
from notebooks.servers.missing_secrets import MAKE_IT, given_up_at
from notebooks.servers.states import LIVE, State, StopReason
from provisioning.desired.variables import names_in_words
from ui.amounts import gpus, moment, span, usd
from ui.parts import Badge, Entry, Fact, Figure, Link, Wait, entry_of
from workloads.freshness import Seen
from workloads.listing import State as WorkState
from workloads.notebook_pages.shown import ServerSeen, address_of, idle_of
from workloads.presenting import state_words
from workloads.runs.pages.steps import ask_for, wait_of

MOST_LIVE, MOST_STOPPED = 50, 10
CENT = Decimal("0.01")
STAYS = "What you saved on its volumes stays."
GO_BACK = "The GPUs that carry it go back then."


@dataclass(frozen=True, kw_only=True)
class May:
    """What a person may do with a server as it stands; one of a retired profile is replaced, not started again."""

    open: bool
    stop: bool
    start: bool
    replace: bool
    keep: bool
    exempt: bool
    remove: bool


@dataclass(frozen=True, kw_only=True)
class IdleNotice:
    """That nobody uses a server, when it is stopped for it, and what to do."""

    text: str
    ends: datetime | None
    advice: str


@dataclass(frozen=True, kw_only=True)
class EndNotice:
    """That the GPUs of a server end, when, and how it goes on."""

    at: datetime | None
    why: str
    action: Link | None


@dataclass(frozen=True, kw_only=True)
class Line:
    """A server in a list; `team` is said where the list has those of several."""

    pk: int
    title: str
    href: str
    sub: str
    tone: str
    word: str
    who: str
    gpus: str
    since: datetime
    cost: Decimal
    idle_since: datetime | None
    address: str
    may: May
    instead: Link | None
    team: str = ""


@dataclass(frozen=True, kw_only=True)
class Lists:
    """The servers of a team that run, of which there may be more, and one's own that do not."""

    live: Sequence[Line]
    has_more: bool
    stopped: Sequence[Line]


def may(server: NotebookServer, by: User, *, leads: Collection[int]) -> May:
    """What this person may do with a server; `leads` are the teams that they lead."""
    is_own = server.owner_id == by.pk
    is_member = server.team_id in by.team_ids
    stops = actions.may_stop(server, by, leads=leads)
    starts = is_own and is_member and not server.is_live
    is_retired = server.profile.state == ProfileState.RETIRED
    return May(
        open=may_open(server, by),
        stop=stops and server.state in (State.STARTING, State.READY),
        start=starts and not is_retired,
        replace=starts and is_retired,
        keep=actions.may_keep(server, by) and server.state == State.READY,
        exempt=actions.may_exempt(by) and server.gpus > 0,
        remove=is_own and not server.is_live,
    )


def may_open(server: NotebookServer, by: User) -> bool:
    """Whether the hub lets this person into a server: its owner alone, once it is ready."""
    return server.owner_id == by.pk and server.state == State.READY


def tone_of(server: NotebookServer) -> str:
    """The hue of a server's state; one that nobody uses is about to end."""
    return "ending" if _is_warned(server) else State(server.state).tone


def word_of(server: NotebookServer) -> str:
    """A server's state in a word."""
    return "Ready, idle" if _is_warned(server) else State(server.state).words


def badge_of(one: ServerSeen) -> Badge:
    """A server's state, with what the cluster says of it: one that starts and stands in line waits, as its pod does."""
    if one.waits and one.why is not None:
        tone, word = state_words(WorkState.WAITING, one.why)
        return {"tone": tone, "word": word}
    return {"tone": tone_of(one.server), "word": word_of(one.server)}


def sentence_of(one: ServerSeen, *, by: User) -> str:
    """What is with a server, in a sentence or two that say what comes next."""
    server = one.server
    state = State(server.state)
    if state is State.STARTING:
        return _starting(one)
    if state is State.READY:
        return _ready(one, by=by)
    if state is State.STOPPING:
        wait = (
            f" It takes longer than usual: {server.message}" if server.message else ""
        )
        return f"{_stopped_words(server)} It is being stopped now. {STAYS}{wait}"
    if state is State.FAILED:
        return f"It did not start. {server.message}"
    return f"{_stopped_words(server)} {_costs_when_stopped(server)} {STAYS}"


def instead_of(server: NotebookServer) -> Link:
    """Where to launch another notebook in place of one whose profile was retired: its successor's card, or all."""
    following = offered_instead(server.profile)
    place = f"{reverse('notebooks', args=[server.team.slug])}?{urlencode({'place': server.tenancy_id})}"
    if following is None:
        return {"label": "Choose another profile", "href": f"{place}#launch"}
    return {"label": f"Launch {following.slug}", "href": f"{place}#{following.slug}"}


def next_step_of(server: NotebookServer, allowed: May) -> str:
    """What a person can do about a server that does not run."""
    if allowed.replace:
        return retired_words(server.profile)
    if not allowed.start:
        return ""
    if server.state == State.FAILED and server.secret_missed_at is None:
        return (
            "Start it again to try once more, or launch another one with other choices. If it fails again, send "
            "what it says above to your platform team."
        )
    return (
        "Start it again, and it comes with the same choices."
        if server.state == State.STOPPED
        else ""
    )


def waiting_of(one: ServerSeen, now: datetime) -> Wait | None:
    """The lines about a start that waits, as a run has them; None while its pod is not there, or nothing waits."""
    why, server = one.why, one.server
    if why is None or why.code == "running":
        return None
    return wait_of(why, server.tenancy, run=None, flavor=server.flavor, now=now)


def idle_notice_of(one: ServerSeen, now: datetime) -> IdleNotice | None:
    """That a server is idle, with what that costs and what comes; None while nobody was told of it, or can tell it."""
    server, since = one.server, one.idle_since
    if not _is_warned(server) or since is None or one.idle_unknown_since is not None:
        return None
    spent = one.idle_usd(now)
    cost = f", which cost {usd(spent)}" if spent else ""
    ends = one.stops_when_idle
    return IdleNotice(
        text=f"Nobody has used it for {span(now - since)}{cost}.",
        ends=ends,
        advice="" if ends else "Stop it if you need it no more.",
    )


def end_notice_of(one: ServerSeen, by: User, now: datetime) -> EndNotice | None:
    """That GPUs end soon that carry a server, and how it goes on; None before its owner was told so."""
    server, carried = one.server, one.uncarried
    if server.told_end is None or server.state not in (State.STARTING, State.READY):
        return None
    if carried is None and server.told_end <= now:
        return EndNotice(
            at=None, why=f"It is stopped once they have gone back. {STAYS}", action=None
        )
    is_coming = carried is not None and carried.at > now
    why = GO_BACK if is_coming else "Your team holds too few GPUs for it by now."
    return EndNotice(
        at=server.told_end,
        why=f"{why} {STAYS}",
        action=_how_it_goes_on(server, carried, now)
        if server.team_id in by.team_ids
        else None,
    )


def _how_it_goes_on(
    server: NotebookServer, carried: Uncarried | None, now: datetime
) -> Link | None:
    """The link to keep the GPUs that end, or to ask for others where they have ended; None where nobody gets them."""
    if server.flavor is None or server.flavor.why_closed:
        return None
    if carried is not None and carried.allocation is not None:
        return {
            "label": "Keep the GPUs longer",
            "href": reverse("renew", args=[carried.allocation]),
        }
    return {
        "label": "Ask for GPUs",
        "href": ask_for(server.flavor.key, server.gpus, server.tenancy, now),
    }


def idle_unknown_of(one: ServerSeen, now: datetime) -> str:
    """That nobody can tell whether a server is idle, and what this means; empty where that is known."""
    if one.idle_unknown_since is None or not one.may_be_idle:
        return ""
    who = "Prometheus has not said whether its GPUs compute"
    if unfollowed_since(use_of(one.server), now) is not None:
        who = "JupyterHub has not said whether somebody works in it"
    return (
        f"Since {moment(one.idle_unknown_since, now)} the cluster's {who}. "
        "Until it does, the notebook is not stopped for being unused."
    )


def going_first_of(one: ServerSeen) -> str:
    """That work waits which takes a ready server's GPUs, and what to do; empty where none does."""
    count = one.going_first
    if not count:
        return ""
    waits = "1 job of the team with a higher priority waits"
    if count > 1:
        waits = f"{count} jobs of the team with a higher priority wait"
    return (
        f"{waits}. As soon as these GPUs are enough for {'it' if count == 1 else 'one'}, the queue takes them and the "
        "notebook is stopped: save what is in memory."
    )


def hub_notice_of(hub: Hub | None, now: datetime, *, of_server: bool) -> str:
    """That a hub is gone or does not answer, and what this means for what is shown; empty where it does."""
    if hub is None:
        return (
            "This cluster's JupyterHub is no longer connected to the portal: what you see is the last that is known."
            if of_server
            else ""
        )
    if hub.reachable is not False or hub.looked_at is None:
        return ""
    means = (
        "What you see is the last that is known, and what you ask for waits until it answers."
        if of_server
        else "What you launch waits until it answers, and states are the last that are known."
    )
    return f"The JupyterHub did not answer when the portal asked on {moment(hub.looked_at, now)}. {means}"


def silence_notice_of(seen: Seen, now: datetime) -> str:
    """That a cluster is silent, and what this means for what its profiles say; empty where it is not."""
    silence = seen.silence(now)
    means = (
        "which GPUs are free is from then, and what you launch waits until it answers."
    )
    return f"{silence}: {means}" if silence else ""


def figures_of(one: ServerSeen, now: datetime) -> list[Figure]:
    """A server in numbers."""
    server = one.server
    kind = server.flavor.kind if server.flavor and server.gpus else ""
    found: list[Figure] = [
        {
            "label": "GPUs",
            "value": str(server.gpus),
            "unit": kind,
        },
        {
            "label": "Ran for",
            "value": span(server.ran(now)) if server.ran(now) else "–",
            "note": "Counted while it can be used.",
        },
        {
            "label": "Cost so far",
            "value": usd(server.cost(now)),
            "note": f"{usd(server.usd_per_hour)} an hour"
            if server.usd_per_hour
            else "It takes no GPU.",
        },
    ]
    since = one.idle_since
    if since is not None and one.idle_unknown_since is None:
        spent = one.idle_usd(now)
        found.append(
            {
                "label": "Not used for",
                "value": span(now - since),
                "note": f"{usd(spent)} in that time"
                if spent >= CENT
                else "Cells that run count as use.",
            }
        )
    return found


def maintenance_words(one: ServerSeen, now: datetime) -> str:
    """What to save before a planned maintenance, and why; empty where it concerns the server no more by then."""
    cluster = one.server.tenancy.cluster
    planned = cluster.maintenance(now)
    if planned is None or planned.is_on(now) or not State(one.server.state).is_live:
        return ""
    if one.ends_at is not None and one.ends_at <= planned.starts:
        return ""
    at = moment(planned.starts, now)
    return save_before_words(cluster.title, at, planned.drains)


def story_of(one: ServerSeen, *, now: datetime) -> list[Entry]:
    """What happened to a server, and what comes."""
    server, state = one.server, State(one.server.state)
    found = [entry_of("past", "Launched", server.launched_at, who=server.owner.name)]
    if server.ready_at is not None:
        found.append(entry_of("past", "Came up", server.ready_at))
    if not state.is_live:
        return [
            *found,
            entry_of("past", state.words, server.stopped_at, tone=state.tone),
        ]
    badge = badge_of(one)
    found.append(entry_of("now", badge["word"], None, tone=badge["tone"]))
    planned = server.tenancy.cluster.maintenance(now)
    comes = [
        (
            planned.stops_at(now) if planned is not None else None,
            "Stopped for the maintenance of its cluster",
        ),
        (
            given_up_at(server) if state is State.STARTING else None,
            "Given up unless its Secret is there",
        ),
        (one.stops_when_idle, "Stopped if nobody uses or keeps it"),
        (one.ends_at, "Stopped: it has run for as long as its profile allows"),
        (
            one.goes_back,
            f"Stopped: the {server.flavor.kind} that carry it go back"
            if server.flavor
            else "",
        ),
    ]
    found += [
        entry_of("future", what, at)
        for at, what in sorted((at, what) for at, what in comes if at)
    ]
    return found


def facts_of(one: ServerSeen, choices: Sequence[str]) -> list[Fact]:
    """What a server was launched with."""
    server = one.server
    rows: list[Fact] = [
        {
            "label": "Profile",
            "text": one.document.title if one.document else server.profile.slug,
        },
        {"label": "Launched by", "text": server.owner.name},
        {
            "label": "Team",
            "text": server.team.name,
            "href": reverse("team", args=[server.team.slug]),
        },
        {"label": "Cluster", "text": server.cluster.title},
        {"label": "Namespace", "copyable": server.tenancy.namespace},
        {"label": "In the hub", "copyable": server.name or "default"},
    ]
    if choices:
        rows.insert(1, {"label": "You chose", "text": ", ".join(choices)})
    if names := names_in_words(server.secret_variables):
        rows.append({"label": "Secrets", "text": names})
    if server.gpu_busy_at is not None and server.is_live:
        rows.append({"label": "GPUs computed last", "at": server.gpu_busy_at})
    if server.keep_until is not None and server.is_live:
        rows.append({"label": "Kept until", "at": server.keep_until})
        if server.keep_reason:
            rows.append({"label": "Kept because", "text": server.keep_reason})
    return rows


def choices_of(one: ServerSeen) -> list[str]:
    """What was chosen of each option, as its title; free choices as they were typed."""
    options = one.document.options if one.document else {}
    found = []
    for key, value in one.server.options.items():
        name, _, free = key.partition("--")
        option = options.get(name)
        choice = option.choices.get(value) if option and not free else None
        found.append(choice.title if choice else str(value))
    return found


def lists_of(team: Team, by: User, *, now: datetime) -> Lists:
    """The team's servers that run, own ones first, and one's own that do not; three queries."""
    rows = (
        NotebookServer.objects.filter(team=team)
        .described()
        .select_related("tenancy__cluster__hub")
    )
    own_first = Case(When(owner=by, then=0), default=1)
    live = list(rows.live().order_by(own_first, "-id")[: MOST_LIVE + 1])
    stopped = list(rows.filter(owner=by).exclude(state__in=sorted(LIVE))[:MOST_STOPPED])
    leads = actions.teams_led_by(by)
    return Lists(
        live=[line_of(one, may(one, by, leads=leads), now) for one in live[:MOST_LIVE]],
        has_more=len(live) > MOST_LIVE,
        stopped=[line_of(one, may(one, by, leads=leads), now) for one in stopped],
    )


def line_of(server: NotebookServer, allowed: May, now: datetime) -> Line:
    """A server as a line of a list."""
    return Line(
        pk=server.pk,
        title=server.title,
        href=reverse("notebook", args=[server.pk]),
        sub=f"{server.profile.slug} · {server.cluster.title}",
        tone=tone_of(server),
        word=word_of(server),
        who=server.owner.name,
        gpus=gpus(server.gpus, server.flavor.kind) if server.flavor else "none",
        since=server.ready_at or server.stopped_at or server.launched_at,
        cost=server.cost(now),
        idle_since=idle_of(server),
        address=address_of(server) if allowed.open else "",
        may=allowed,
        instead=instead_of(server) if allowed.replace else None,
    )


def _starting(one: ServerSeen) -> str:
    server = one.server
    if server.observed_generation < server.generation:
        if server.message:
            return f"It does not start yet: {server.message}"
        return "The portal asks the hub to start it."
    if one.why is None and server.secret_missed_at is not None:
        return f"{server.message} {MAKE_IT}"
    if one.why is None:
        return "The hub has taken it and makes its pod, the place on the cluster where it runs."
    if one.why.code == "running":
        return "Its pod runs. It is ready as soon as the notebook in it answers."
    return one.why.what


def _ready(one: ServerSeen, *, by: User) -> str:
    if one.server.owner_id != by.pk:
        return f"{one.server.owner.name} can work in it. Only they can open it."
    if not one.server.gpus:
        return "It is ready: open it and work."
    first = (
        "" if one.server.cluster.has_volcano else f" {goes_first_words(one.priority)}"
    )
    paid = f"{one.server.team.name} pays for those that it holds, used or not"
    return f"It is ready: open it and work. Its GPUs are yours until it stops; {paid}.{first}"


def _costs_when_stopped(server: NotebookServer) -> str:
    """What a stopped server costs: money follows what a team holds, and its GPUs stay held until they end."""
    if not server.gpus:
        return "It costs nothing now."
    if server.stop_reason == StopReason.END:
        return "It uses no GPUs now."
    return (
        f"It uses no GPUs now; those that {server.team.name} holds cost, used or not, "
        "until they are given back or end."
    )


def _stopped_words(server: NotebookServer) -> str:
    """Who or what stopped a server."""
    if server.stop_reason == StopReason.PERSON and server.stopped_by is not None:
        return f"{server.stopped_by.name} stopped it."
    return StopReason(server.stop_reason).words if server.stop_reason else ""


def _is_warned(server: NotebookServer) -> bool:
    return server.state == State.READY and server.warned_at is not None
