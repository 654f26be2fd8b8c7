"""People and teams that cannot ask for something yet: what is missing, and the ask that works."""

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
from ui.parts import Empty

NAMESPACE = OFFERINGS["namespace"]


def on_no_cluster(team: Team) -> Empty:
    """What a team without a namespace lacks, as title, text and what to press where one can be had."""
    leaving = Tenancy.objects.filter(team=team).exclude(
        stage__in=(Stage.HERE, Stage.GONE)
    )
    if place := leaving.select_related("cluster").first():
        return {
            "title": f"{team.name} leaves {place.cluster.title}",
            "text": "Nothing new is granted to a team that leaves. Its leads can undo that until all is deleted.",
            "action": {
                "label": "See how it leaves",
                "href": reverse("leaving", args=[team.slug]),
            },
        }
    title = f"{team.name} is on no cluster yet"
    text = "GPUs are granted to a namespace on a cluster, and the team has none."
    if not setting_of(NAMESPACE).enabled:
        return {
            "title": title,
            "text": f"{text} Namespaces are not offered now: ask a platform lead.",
        }
    if not any(not line.reason for line in clusters_of(team, NAMESPACE)):
        return {
            "title": title,
            "text": f"{text} No cluster takes the team now: ask a platform lead.",
        }
    query = urlencode({"team": team.slug, "project": ""})
    return {
        "title": title,
        "text": f"{text} Ask for a namespace first; then ask for GPUs.",
        "action": {
            "label": "Ask for a namespace",
            "href": f"{reverse('request-new', args=[NAMESPACE.key])}?{query}",
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
    if not any(place.team_id == team.pk for place in offers.tenancies):
        return on_no_cluster(team)
    return {
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
        "example": "For example: the group vision-team on training-eastus.",
    }
