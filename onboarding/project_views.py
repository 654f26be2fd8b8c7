"""The page of a team's projects."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import Team
from onboarding.projects import projects_of, waiting_for


@require_safe
def projects(request: HttpRequest, slug: str) -> HttpResponse:
    """Each project with its namespaces and what they hold, and the way to ask for another one."""
    user = visitor(request)
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    ask = (
        f"{reverse('request-new', args=['namespace'])}?{urlencode({'team': team.slug})}"
    )
    context = {
        "team": team,
        "projects": [
            {"line": line, "ask": f"{ask}&{urlencode({'project': line.slug})}"}
            for line in projects_of(team)
        ],
        "waiting": waiting_for(team),
        "is_member": team.pk in user.team_ids,
        "ask": f"{ask}&project=",
        "first": {"label": "Ask for a project", "href": f"{ask}&project="}
        if team.pk in user.team_ids
        else None,
    }
    return render(request, "onboarding/projects.html", context)
