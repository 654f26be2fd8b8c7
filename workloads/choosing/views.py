"""The pages on which people see the profiles of notebooks, and take a development container along."""

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visible_team, visitor
from notebooks.profile_desk.kept import offered
from notebooks.profiles.devcontainers import devcontainer
from workloads.choosing.page import cards_of
from workloads.runs.planning.places import open_to


@require_safe
def notebooks(request: HttpRequest, slug: str) -> HttpResponse:
    """The profiles of notebooks in one of a team's namespaces, each with its price and its answer."""
    user = visitor(request)
    team = visible_team(user, slug)
    tenancies = [one for one in open_to(user) if one.team_id == team.pk]
    chosen = next((one for one in tenancies if str(one.pk) == request.GET.get("place")), None)
    tenancy = chosen or next(iter(tenancies), None)
    context = {
        "team": team,
        "is_member": team.pk in user.team_ids,
        "tenancy": tenancy,
        "places": [
            {
                "label": f"{one.namespace} on {one.cluster.title}",
                "href": f"?{urlencode({'place': one.pk})}",
                "current": one is tenancy,
            }
            for one in tenancies
        ],
        "cards": cards_of(tenancy, now=timezone.now()) if tenancy else [],
        "first": {
            "label": "Ask for GPUs",
            "href": f"{reverse('request-new')}?{urlencode({'team': team.slug})}",
        },
    }
    return render(request, "workloads/notebooks.html", context)


@require_safe
def profile_devcontainer(request: HttpRequest, slug: str) -> HttpResponse:
    """The `devcontainer.json` of a profile that people can choose, as a file."""
    visitor(request)
    found = next((one for one in offered() if one.document.slug == slug), None)
    if found is None:
        raise Http404
    headers = {"Content-Disposition": 'attachment; filename="devcontainer.json"'}
    return HttpResponse(devcontainer(found.document), content_type="application/json", headers=headers)
