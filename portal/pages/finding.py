"""What a person may see, found by what it is called: each kind in a bounded number of queries and rows."""

import re
from collections.abc import Iterator
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any, NotRequired, TypedDict

from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from accounts.models import Team, User
from allocations.models import Allocation
from approvals.models import Request, RequestQuerySet
from approvals.request_form.offers import Offers
from catalogue.actions import settings_in_order
from catalogue.models import OfferingSetting, setting_of
from catalogue.offerings import OFFERINGS
from fleet.models import Cluster, Flavor
from notebooks.models import NotebookServer
from portal.pages.matching import matcher, wish_of
from provisioning.models import Tenancy
from ui.amounts import day
from workloads.models import Run

MAX_FOUND = 5
# What a request is called follows from its spec, which no index knows: only the newest ones are compared with it.
# They are chosen in a query within the query: the database would else join all there are before it takes so many.
MAX_SCANNED = 300
NUMBERED = re.compile(r"(?:request[- ]?|#)?(\d{1,12})", re.ASCII | re.IGNORECASE)


class Item(TypedDict):
    """Something that is found, with where it is."""

    label: str
    href: str
    icon: str
    sub: NotRequired[str]
    key: NotRequired[str]


def holdings(user: User, q: str) -> Iterator[Item]:
    """What can be done with the GPUs that the person's own teams hold, those that end next first: give back, keep."""
    rows = Allocation.objects.of_member(user).live().of_gpus()
    rows = rows.select_related("team", "flavor__cluster").order_by("until", "pk")
    matches, now = matcher(q), timezone.now()
    for row in rows[:MAX_SCANNED]:
        sub = f"{row.team.name}, {row.where}, until {day(row.until, now)}"
        yield from (
            Item(label=label, icon=icon, sub=sub, href=reverse(route, args=[row.pk]))
            for label, icon, route in (
                (f"Give back {row.what}", "undo-2", "give-back"),
                (f"Keep {row.what} longer", "calendar-clock", "renew"),
            )
            if matches(label) and not (route == "renew" and row.why_not_kept)
        )


def requests(user: User, q: str) -> Iterator[Item]:
    """Requests by their number, or by what they are called, their team and who asked."""
    for row in islice(_requests(user, q), MAX_FOUND):
        yield {
            "label": f"{row.name()} for {row.team.name}",
            "icon": "inbox",
            "sub": f"request {row.pk}, {row.requester.name}",
            "href": reverse("request", args=[row.pk]),
        }


def _requests(user: User, q: str) -> Iterator[Request]:
    visible = Request.objects.visible_to(user)
    rows = visible.select_related("team", "flavor__cluster", "requester")
    known = set()
    if number := NUMBERED.fullmatch(q):
        for row in rows.filter(pk=int(number[1])):
            known.add(row.pk)
            yield row
    matches = matcher(q)
    newest = list(rows.filter(pk__in=visible.values("pk")[:MAX_SCANNED]))
    for row in newest:
        if row.pk not in known and matches(
            f"{row.name()} {row.of.name} {row.team.name} {row.requester.name}"
        ):
            known.add(row.pk)
            yield row
    if len(newest) == MAX_SCANNED:
        yield from _older(rows, q).exclude(pk__in=known)[:MAX_FOUND]


def _older(rows: RequestQuerySet, q: str) -> RequestQuerySet:
    """Those whose requester, team or kind of GPU is called so, however old they are.

    Whose names these are is read first: indexes find the requests by them, and none are compared where there is none.
    """
    named: dict[str, list[int]] = {}
    people = _ids("requester_id", User.objects.filter(name__icontains=q))
    others = (
        _ids("team_id", Team.objects.filter(name__icontains=q)),
        _ids("flavor_id", Flavor.objects.filter(product__icontains=q)),
    )
    for column, pk in people.union(*others):
        named.setdefault(column, []).append(pk)
    if not named:
        return rows.none()
    conditions = (Q(**{f"{column}__in": pks}) for column, pks in named.items())
    return rows.filter(reduce(or_, conditions))


def _ids(column: str, rows: QuerySet[Any]) -> QuerySet[Any, tuple[str, int]]:
    return rows.order_by().values_list(Value(column), "pk")


def runs(user: User, q: str) -> Iterator[Item]:
    """The newest runs of the person's teams by their titles and names."""
    matches = matcher(q)
    newest = Run.objects.visible_to(user).values("pk")[:MAX_SCANNED]
    rows = Run.objects.filter(pk__in=newest).select_related("team")
    # Without the manifests, which are most of a run.
    rows = rows.only("title", "name", "team__name")
    found = (row for row in rows if matches(f"{row.title} {row.name}"))
    for row in islice(found, MAX_FOUND):
        yield {
            "label": row.title,
            "icon": "play",
            "sub": f"run {row.pk}, {row.team.name}",
            "href": reverse("run", args=[row.pk]),
        }


def notebooks(user: User, q: str) -> Iterator[Item]:
    """The newest notebook servers of the person's teams by their titles."""
    matches = matcher(q)
    rows = NotebookServer.objects.visible_to(user).select_related("team", "owner")
    newest = rows.only("title", "team__name", "owner__name").order_by("-id")
    found = (row for row in newest[:MAX_SCANNED] if matches(row.title))
    for row in islice(found, MAX_FOUND):
        yield {
            "label": row.title,
            "icon": "book-open",
            "sub": f"notebook of {row.owner.name}, {row.team.name}",
            "href": reverse("notebook", args=[row.pk]),
        }


def gpus(user: User, q: str) -> Iterator[Item]:
    """The form for as many GPUs as somebody types, "4 a100", filled in; for members of a team that may ask for them."""
    wish = wish_of(q)
    if wish is None or not (user.teams and setting_of(OFFERINGS["gpus"]).enabled):
        return
    matches, count = matcher(wish.kind), wish.count or 1
    called = (
        flavor
        # Work on spot nodes is interrupted: what is cheapest is not what somebody means who names the kind alone.
        for flavor in sorted(Offers.of(user).flavors, key=lambda one: one.is_spot)
        if matches(f"{flavor.words} {flavor.name} {flavor.cluster.title}")
    )
    for flavor in islice(called, MAX_FOUND):
        values = urlencode({"flavor": flavor.key, "gpus": str(count)})
        yield {
            "label": f"Ask for {count} × {flavor.words}",
            "icon": "plus",
            "sub": f"{flavor.cluster.title}, {flavor.free_words}",
            "href": f"{reverse('request-new')}?{values}",
        }


def offerings(user: User, q: str) -> Iterator[Item]:
    """What is offered here by its name and by what may be chosen of it, for members of a team."""
    if not user.teams:
        return
    matches = matcher(q)
    found = (
        row for row in settings_in_order() if row.enabled and matches(_called(row))
    )
    for row in islice(found, MAX_FOUND):
        yield {
            "label": OFFERINGS[row.key].name,
            "icon": "plus",
            "sub": OFFERINGS[row.key].line,
            "href": reverse("request-new", args=[row.key]),
        }


def _called(row: OfferingSetting) -> str:
    offering = OFFERINGS[row.key]
    prices = {**offering.prices, **row.prices}
    chosen = [name for name, price in prices.items() if price is not None]
    return " ".join([offering.name, *chosen])


def teams(user: User, q: str) -> Iterator[Item]:
    """Teams that the person may see, by their names, cost centres and namespaces."""
    for team in teams_called(Team.objects.visible_to(user), q)[:MAX_FOUND]:
        yield {
            "label": team.name,
            "sub": team.cost_centre,
            "icon": "users",
            "href": reverse("team", args=[team.slug]),
        }


def teams_called(rows: QuerySet[Team], q: str) -> QuerySet[Team]:
    """Of these teams those whose name, cost centre or one of whose namespaces has these letters."""
    places = Tenancy.objects.present().filter(
        team=OuterRef("pk"), namespace__icontains=q
    )
    return rows.filter(
        Q(name__icontains=q) | Q(cost_centre__icontains=q) | Exists(places)
    )


def clusters(q: str) -> Iterator[Item]:
    """Clusters by their names or their GPUs, each with its queue."""
    rows = Cluster.objects.filter(
        Q(name__icontains=q) | Q(title__icontains=q) | Q(flavors__product__icontains=q)
    )
    for row in rows.distinct()[:MAX_FOUND]:
        yield {
            "label": row.title,
            "sub": row.region,
            "icon": "server",
            "href": reverse("cluster", args=[row.name]),
        }
        if row.written_off_at is not None:
            continue
        yield {
            "label": f"Queue of {row.title}",
            "sub": "who runs and who waits",
            "icon": "history",
            "href": reverse("queue", args=[row.name]),
        }
