"""What audit events are about, in words and with the page of each thing that the visitor may open."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.urls import reverse

from accounts.models import Team, User
from accounts.roles import Permission
from audit.models import Event
from fleet.models import Cluster, Flavor
from manual.models import Task
from notices.models import Channel
from offboarding.models import Departure
from policy.models import PolicyDraft

WORDS = {
    "directory-brake": "Directory",
    "brake": "Ends held back",
    "tenancy": "Place on a cluster",
    "allocation": "What a team holds",
    "policy": "Policy version",
    "policy_draft": "Draft of the policy",
    "delegation": "Stand-in",
    "cost_centre": "Cost centre",
    "delivery": "Delivery of a notice",
    "hub": "JupyterHub of",
    "orphan": "Orphaned reservation",
    "price": "Azure's list price",
    "prices": "Azure's list prices of",
    "subscription": "Azure subscription",
    "model_endpoint": "Model in Azure OpenAI",
    "model_account": "Account of Azure OpenAI",
    "registry_access": "Access to the registry",
}
# A number behind these words tells people something.
NUMBERED = frozenset(
    {
        "request",
        "run",
        "notebook",
        "drift",
        "task",
        "policy",
        "policy_draft",
        "departure",
        "delivery",
        "channel",
        "reservation",
        "quota_increase",
    }
)
# What can be asked for with its number, by people or by the links of pages.
SEARCHABLE = NUMBERED | {"cluster", "flavor", "team", "tenancy", "allocation"}
# A thing whose own page is its team's.
OF_THE_TEAM = frozenset(
    {"tenancy", "allocation", "model_endpoint", "model_account", "registry_access"}
)


@dataclass(frozen=True)
class About:
    """What an event is about; `href` is empty for what has no page, or none for this visitor."""

    text: str
    href: str = ""


class Subjects:
    """Names and pages of what a list of events is about, looked up in one query a kind."""

    def __init__(self, events: Iterable[Event], *, teams: Mapping[int, Team]) -> None:
        kinds = {event.subject_type for event in events}
        self._teams = teams
        self._clusters = (
            {row.pk: row for row in Cluster.objects.all()}
            if kinds & {"cluster", "hub"}
            else {}
        )
        self._titles = {row.name: row.title for row in self._clusters.values()}
        self._flavors = (
            {row.pk: row for row in Flavor.objects.select_related("cluster")}
            if "flavor" in kinds
            else {}
        )

    def of(self, event: Event) -> About:
        """What this event is about."""
        kind, pk = event.subject_type, _number(event.subject_id)
        if kind in ("", "person", "route"):
            return About("")
        if kind == "cluster" and pk in self._clusters:
            found = self._clusters[pk]
            return About(
                f"Cluster {found.title}", reverse("cluster", args=[found.name])
            )
        if kind == "flavor" and pk in self._flavors:
            flavor = self._flavors[pk]
            page = reverse("cluster", args=[flavor.cluster.name])
            return About(f"{flavor.kind} on {flavor.cluster.title}", page)
        team = self._teams.get(pk if kind == "team" else event.team_id or 0)
        if kind == "team":
            return About("Team", _page_of(team))
        if kind == "hub":
            named = self._titles.get(event.subject_id, event.subject_id)
            return About(f"{WORDS[kind]} {named}")
        if kind in OF_THE_TEAM:
            return About(WORDS[kind], _page_of(team))
        return About(_words(event), PAGES[kind](pk) if kind in PAGES and pk else "")


def whole(event: Event, *, by: User, teams: Mapping[int, Team]) -> About:
    """The same of one event, with pages that only some may open and that may be gone by now: asks for each."""
    found = Subjects([event], teams=teams).of(event)
    kind, pk = event.subject_type, _number(event.subject_id)
    if found.href or not found.text:
        return found
    href = ""
    if (
        kind == "task"
        and by.may(Permission.DECIDE_AS_PLATFORM)
        and Task.objects.filter(pk=pk).exists()
    ):
        href = reverse("task", args=[pk])
    elif kind == "policy_draft" and by.may(Permission.SEE_POLICY_DRAFTS):
        href = (
            reverse("policy-draft", args=[pk])
            if PolicyDraft.objects.filter(pk=pk).exists()
            else ""
        )
    elif kind == "channel" and by.may(Permission.MANAGE_NOTICES):
        href = (
            reverse("channel", args=[pk])
            if Channel.objects.filter(pk=pk).exists()
            else ""
        )
    elif kind == "delivery" and by.may(Permission.MANAGE_NOTICES):
        href = reverse("deliveries")
    elif kind in ("template", "profile") and by.may(Permission.MANAGE_CATALOGUE):
        href = reverse(kind, args=[event.subject_id])
    elif kind == "hub" and by.may(Permission.MANAGE_CLUSTERS):
        href = reverse("hub", args=[event.subject_id])
    elif kind == "departure":
        left = (
            Departure.objects.visible_to(by)
            .filter(pk=pk)
            .select_related("team")
            .first()
        )
        href = reverse("departure", args=[left.team.slug, left.pk]) if left else ""
    return About(found.text, href)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _page_of(team: Team | None) -> str:
    return reverse("team", args=[team.slug]) if team else ""


def _words(event: Event) -> str:
    kind = event.subject_type
    words = WORDS.get(kind, kind.replace("_", " ").replace("-", " ").capitalize())
    named = kind in NUMBERED or not event.subject_id.isdigit()
    return f"{words} {event.subject_id}".strip() if named else words


PAGES: Mapping[str, Callable[[int], str]] = {
    "request": lambda pk: reverse("request", args=[pk]),
    "run": lambda pk: reverse("run", args=[pk]),
    "notebook": lambda pk: reverse("notebook", args=[pk]),
    "drift": lambda pk: reverse("drift", args=[pk]),
    "policy": lambda pk: reverse("policy-version", args=[pk]),
    "reservation": lambda pk: reverse("reservation", args=[pk]),
    "price": lambda pk: reverse("price", args=[pk]),
    # Of these the page of all leads on: a limit that nobody reads any more is forgotten, as is a removed service.
    "service_level": lambda _: reverse("service-levels"),
    "limit": lambda _: reverse("capacity"),
    "quota_increase": lambda _: reverse("capacity"),
}
