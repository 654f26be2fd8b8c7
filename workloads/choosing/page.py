"""The profiles of notebooks in a namespace, each with its price and its answer: now, in line, not held, not for you."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache

from approvals.request_form.quick_ends import quick_end
from approvals.requests.links import ask_link
from fleet.models import Flavor
from notebooks.hubs.models import Hub
from notebooks.places import flavors_on, place_of
from notebooks.profile_desk.kept import Offered, offered
from notebooks.profiles.choosing import NotAChoice, chosen
from notebooks.profiles.devcontainers import devcontainer
from notebooks.profiles.document import Document, usual
from notebooks.profiles.pricing import price_words, size_words
from notebooks.profiles.priority import goes_first_words, priority_of
from notebooks.profiles.publishing import most_gpus
from notebooks.profiles.spawning import refused_here
from provisioning.models import Tenancy
from ui.amounts import gpus
from ui.parts import Hint, Verdict
from workloads.choosing.repositories import vscode_link
from workloads.freshness import Seen
from workloads.runs.planning.maintained import AFTER, maintained_until_words
from workloads.runs.planning.nodes import nodes_as_seen, on_nodes
from workloads.runs.planning.places import pools_of
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.queue_copies import dated_demands
from workloads.runs.planning.start_verdict import (
    AT_ONCE,
    MAY_BE_STOPPED,
    start_verdict,
)

WITHOUT_GPUS = "It takes none of your team's GPUs."
TAKEN_BACK = "the notebook is stopped then, with what it has in memory"
Choices = Mapping[str, Mapping[str, str]]
RANKS = ("now", "queue", "not_held", "refused")


class Outcome(StrEnum):
    """What would become of a server that is started now."""

    NOW = "now"
    QUEUE = "queue"
    NOT_HELD = "not_held"
    REFUSED = "refused"

    @property
    def tone(self) -> str:
        """The hue of its verdict."""
        return {
            "now": "good",
            "queue": "waiting",
            "not_held": "waiting",
            "refused": "past",
        }[self.value]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a profile's card says; `lacks` are GPUs to ask for, and `ask` is the form for them, filled in."""

    outcome: Outcome
    sentence: str
    detail: str = ""
    lacks: int = 0
    ask: str = ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """A profile in a namespace. USD are those of an hour of the server that starts where nobody chose anything.

    `price` is empty where the cluster has no such GPUs.
    """

    profile: Offered
    size: str
    price: str
    usd_per_hour: Decimal | None
    options: Sequence[str]
    answer: Answer

    @property
    def is_paid(self) -> bool:
        """Whether its GPUs are paid for already, by who holds them, whether it runs or not."""
        can_start = self.answer.outcome in (Outcome.NOW, Outcome.QUEUE)
        return can_start and bool(self.usd_per_hour)

    @property
    def devcontainer(self) -> str:
        """The text of its `devcontainer.json`."""
        return devcontainer(self.profile.document)

    @property
    def vscode(self) -> str:
        """What opens its development container in VS Code."""
        return vscode_link(self.profile)

    @property
    def verdict(self) -> Verdict:
        """The answer as a strip."""
        label = f"Ask for {gpus(self.answer.lacks)}"
        hint: Hint = {
            "text": "The form is filled in.",
            "label": label,
            "href": self.answer.ask,
        }
        return {
            "tone": self.answer.outcome.tone,
            "sentence": self.answer.sentence,
            "detail": self.answer.detail,
            "rules": [],
            "hint": hint if self.answer.ask else None,
        }


def away_of(hub: Hub | None, seen: Seen, now: datetime) -> str:
    """Who has to answer again before anything starts in a namespace; empty where everybody does."""
    if seen.silence(now):
        return "the cluster"
    return "JupyterHub" if hub is not None and hub.reachable is False else ""


def cards_of(
    tenancy: Tenancy, *, now: datetime, away: str = "", choices: Choices | None = None
) -> list[Card]:
    """Every profile that is offered, those that start first before those that never will.

    `tenancy` comes with team, project and cluster; `away` is who has to answer again before anything starts;
    `choices` are what was chosen in which profile, by its slug, where it is not as usual. In five queries, one more
    where profiles want GPUs that the cluster has not, two where one could start now, and two where one has to wait.
    """
    profiles, picked = offered(), choices or {}
    flavors = flavors_on(tenancy.cluster_id)
    place, pools = place_of(tenancy, flavors), pools_of(tenancy, flavors)
    counts = {one.document.slug: _gpus(one.document, picked) for one in profiles}
    wanted = {(one.document.flavor, counts[one.document.slug]) for one in profiles}
    demands = dated_demands(tenancy, wanted, now=now)
    # Read once, and only where a profile's quota is free.
    nodes = cache(lambda: nodes_as_seen(tenancy.cluster_id, flavors.values()))
    elsewhere = _elsewhere(
        tenancy, {name for name, count in wanted if count} - flavors.keys()
    )

    maintained = maintained_until_words(tenancy.cluster, now)

    def put_off(found: Answer) -> Answer:
        if maintained:
            found = _put_off(found, AFTER, maintained)
        if away:
            sentence = f"It starts when {away} answers again"
            found = _put_off(found, sentence, "What was known before:")
        return found

    def answer(document: Document) -> Answer:
        if refused := refused_here(document, place):
            return Answer(
                outcome=Outcome.REFUSED, sentence="Not for you here", detail=refused
            )
        count, flavor = counts[document.slug], flavors.get(document.flavor)
        if not count:
            return put_off(
                Answer(
                    outcome=Outcome.NOW,
                    sentence=AT_ONCE,
                    detail=WITHOUT_GPUS,
                )
            )
        pool = pools.get(document.flavor)
        room = pool.gpus + pool.borrow if pool else 0
        if flavor is None:
            return _not_here(document, tenancy, elsewhere)
        if pool is None or count > room:
            return _not_held(count, pool, flavor, tenancy, now)
        priority, demand = priority_of(document), demands[document.flavor, count]
        found = start_verdict(
            count, pool, demand, priority=priority, taken_back=TAKEN_BACK
        )
        if found["tone"] == "good":
            found = on_nodes(found, pool, nodes(), each=count, pods=1)
        outcome = Outcome.NOW if found["tone"] == "good" else Outcome.QUEUE
        is_said = found["sentence"] == MAY_BE_STOPPED or tenancy.cluster.has_volcano
        later = "" if is_said else f" {goes_first_words(priority)}"
        return put_off(
            Answer(
                outcome=outcome,
                sentence=found["sentence"],
                detail=f"{found['detail']}{later}",
            )
        )

    cards = [
        _card(
            one,
            flavors.get(one.document.flavor),
            elsewhere.get(one.document.flavor, []),
            answer(one.document),
        )
        for one in profiles
    ]
    return sorted(
        cards,
        key=lambda one: (
            RANKS.index(one.answer.outcome),
            one.profile.document.order,
            one.profile.document.slug,
        ),
    )


def _put_off(answer: Answer, sentence: str, why: str) -> Answer:
    """The answer where it starts later than its GPUs are there."""
    return replace(
        answer,
        outcome=Outcome.QUEUE,
        sentence=sentence,
        detail=f"{why} {answer.detail}",
    )


def _elsewhere(
    tenancy: Tenancy, names: Collection[str]
) -> Mapping[str, Sequence[Flavor]]:
    """The kinds of GPU of these names that the team can have on other clusters."""
    found = defaultdict[str, list[Flavor]](list)
    if names:
        rows = (
            Flavor.objects.offered_to(tenancy.team)
            .filter(name__in=names)
            .select_related("cluster")
        )
        for one in rows:
            found[one.name].append(one)
    return found


def _card(
    profile: Offered, flavor: Flavor | None, elsewhere: Sequence[Flavor], answer: Answer
) -> Card:
    document = profile.document
    has_gpus = bool(most_gpus(document))
    price = flavor.price_per_gpu_hour if flavor else None
    usd = (
        None
        if has_gpus and price is None
        else (price or Decimal(0)) * _usual_gpus(document)
    )
    known = flavor or next(iter(elsewhere), None)
    return Card(
        profile=profile,
        size=size_words(document, known.words if known and has_gpus else "GPU"),
        price=""
        if usd is None
        else price_words(document, [price] if price is not None else []),
        usd_per_hour=usd,
        options=[option.title for option in document.options.values()],
        answer=answer,
    )


def _not_here(
    document: Document, tenancy: Tenancy, elsewhere: Mapping[str, Sequence[Flavor]]
) -> Answer:
    """The cluster has no such GPUs; where the team could have them is said."""
    others = elsewhere.get(document.flavor, [])
    what = others[0].kind if others else document.flavor
    where = " and ".join(one.cluster.title for one in others)
    has = f" {where} {'has' if len(others) == 1 else 'have'}." if others else ""
    detail = f"{tenancy.cluster.title} has no {what}.{has}"
    return Answer(
        outcome=Outcome.REFUSED, sentence="Not on this cluster", detail=detail
    )


def _not_held(
    count: int, pool: Pool | None, flavor: Flavor, tenancy: Tenancy, now: datetime
) -> Answer:
    """The team has too few GPUs for it, or none; what it lacks is asked for where the cluster has any."""
    room = pool.gpus + pool.borrow if pool else 0
    most = f"{gpus(room, flavor.kind)} at most" if room else "none"
    # More than the cluster has in all are of no use to ask for.
    is_there = count <= max(flavor.gpus_total, room)
    is_asked = flavor.is_offered and tenancy.cluster.enabled and is_there
    has = (
        "" if is_there else f" {tenancy.cluster.title} has {flavor.gpus_total} in all."
    )
    return Answer(
        outcome=Outcome.NOT_HELD,
        sentence=f"Your team holds {'too few' if room else 'no'} {flavor.kind}",
        detail=f"It takes {gpus(count, flavor.kind)}; this namespace can have {most}.{has}",
        lacks=count - room if is_there else 0,
        ask=_ask(flavor, count - room, tenancy, now) if is_asked else "",
    )


def _ask(flavor: Flavor, count: int, tenancy: Tenancy, now: datetime) -> str:
    return ask_link(
        "gpus",
        team=tenancy.team.slug,
        spec={"flavor": flavor.key, "gpus": count, "purpose": "notebook"},
        until=quick_end("7", now),
        namespace=tenancy.namespace,
    )


def _gpus(document: Document, choices: Choices) -> int:
    """The GPUs of a server as it was chosen; of choices that there are not, and without any, as usual."""
    try:
        return chosen(document, choices[document.slug]).gpus
    except (KeyError, NotAChoice):
        return _usual_gpus(document)


def _usual_gpus(document: Document) -> int:
    return int(usual(document, "gpus") or 0)
