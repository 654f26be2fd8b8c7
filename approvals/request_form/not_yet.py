"""People and teams that cannot ask for something yet: what is missing, and the ask that works."""

from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urlencode

from django.urls import reverse

from accounts.models import Team, User
from approvals.request_form.offers import Offers
from approvals.requests.links import on_board_link
from catalogue.choices import clusters_of
from catalogue.models import setting_of
from catalogue.offerings import OFFERINGS
from provisioning.models import Tenancy
from provisioning.stages import Stage
from ui.parts import Empty, Link

NAMESPACE = OFFERINGS["namespace"]


def lacks_place(team: Team, tenancies: Iterable[Tenancy]) -> Empty | None:
    """Why this team can ask for nothing on the clusters where it is; None where one of them takes new requests.

    `tenancies` come with their clusters.
    """
    here = [row for row in tenancies if row.team_id == team.pk and row.is_here]
    if any(row.cluster.enabled for row in here):
        return None
    return _on_closed(team, here) if here else on_no_cluster(team)


def _on_closed(team: Team, here: Sequence[Tenancy]) -> Empty:
    """Where all clusters of a team are out of use: what it holds there goes on, and where more can be had."""
    names = sorted({row.cluster.title for row in here})
    verb = "takes" if len(names) == 1 else "take"
    title = f"{' and '.join(names)} {verb} no new requests now"
    text = f"What {team.name} holds there goes on until it ends."
    if _takes(team, but={row.cluster.name for row in here}):
        return {
            "title": title,
            "text": f"{text} For more, ask for a namespace on another cluster first.",
            "action": _ask_for_namespace(team),
        }
    return {"title": title, "text": f"{text} For more, ask a platform lead."}


def _takes(team: Team, *, but: Collection[str] = ()) -> bool:
    """Whether a cluster other than these takes this team, and namespaces are offered."""
    return setting_of(NAMESPACE).enabled and any(
        not line.reason and line.value not in but
        for line in clusters_of(team, NAMESPACE)
    )


def _ask_for_namespace(team: Team) -> Link:
    query = urlencode({"team": team.slug, "project": ""})
    return {
        "label": "Ask for a namespace",
        "href": f"{reverse('request-new', args=[NAMESPACE.key])}?{query}",
    }


def on_no_cluster(team: Team) -> Empty:
    """What a team without a namespace lacks, as title, text and what to press where one can be had."""
    places = Tenancy.objects.filter(team=team)
    leaving = places.exclude(stage__in=(Stage.HERE, Stage.GONE))
    if place := leaving.select_related("cluster").first():
        return {
            "title": f"{team.name} leaves {place.cluster.title}",
            "text": "Nothing new is granted to a team that leaves. Its leads can undo that until all is deleted.",
            "action": {
                "label": "See how it leaves",
                "href": reverse("leaving", args=[team.slug]),
                "icon": "log-out",
            },
        }
    title = f"{team.name} is on no cluster {'any more' if places.exists() else 'yet'}"
    text = "GPUs are granted to a namespace on a cluster, and the team has none."
    if not setting_of(NAMESPACE).enabled:
        return {
            "title": title,
            "text": f"{text} Namespaces are not offered now: ask a platform lead.",
        }
    if not _takes(team):
        return {
            "title": title,
            "text": f"{text} No cluster takes the team now: ask a platform lead.",
        }
    return {
        "title": title,
        "text": f"{text} Ask for a namespace first; then ask for GPUs.",
        "action": _ask_for_namespace(team),
    }


def being_made(place: Tenancy) -> Empty:
    """That a namespace, which comes with its cluster and team, is not there yet, and where it is followed."""
    return {
        "title": f"{place.namespace} is being made",
        "text": f"The portal has not finished it on {place.cluster.title}. Work can start there once it stands.",
        "action": {
            "label": "See how far it is",
            "href": reverse("team", args=[place.team.slug]),
        },
    }


def lacks(user: User, offers: Offers | None, *, slug: str) -> Empty | None:
    """What keeps the team of this short name, or the person's only ones, from asking; None when they can.

    `offers` are those of what takes GPUs of a cluster; None for what any team may ask for.
    """
    if not user.teams:
        action = on_board_link(user)
        return _in_no_team(offers) | ({"action": action} if action else {})
    named = [team for team in user.teams if team.slug == slug]
    if offers is None or (not named and offers.flavors):
        return None
    team = next(iter(named or user.teams))
    if any(offers.tenancy(team.slug, flavor) for flavor in offers.flavors):
        return None
    return lacks_place(team, offers.tenancies) or {
        "title": f"No GPUs are offered where {team.name} is",
        "text": "A platform lead says which kinds of GPU are offered on a cluster.",
        "action": {"label": "Look at the clusters", "href": reverse("clusters")},
    }


def _in_no_team(offers: Offers | None) -> Empty:
    title = "You are in no team yet"
    if offers is None:
        return {
            "title": title,
            "text": "Everything is asked for by a team. Its members come from its Entra group.",
            "example": "For example: the group vision-team became Vision.",
        }
    return {
        "title": title,
        "text": "GPUs are asked for by a team that is on a cluster. Its members come from its Entra group.",
        "example": "For example: the group vision-team on Training, East US.",
    }
