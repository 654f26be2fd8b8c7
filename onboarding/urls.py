"""Where the pages of onboarding live."""

from django.urls import path

from onboarding import fragments as parts
from onboarding import (
    isolation_page,
    project_views,
    team_change_views,
    use_views,
    views,
)

urlpatterns = [
    path("teams/new", views.wizard, name="onboard"),
    path("isolation", isolation_page.isolation, name="isolation"),
    path("teams/new/check", parts.check, name="onboard-check"),
    path("teams/new/groups", parts.groups, name="onboard-groups"),
    path("teams/new/preview", parts.preview, name="onboard-preview"),
    path(
        "teams/<slug:slug>/settings",
        team_change_views.settings_of_team,
        name="team-settings",
    ),
    path("teams/<slug:slug>/projects", project_views.projects, name="team-projects"),
    path("teams/<slug:slug>/onboarding", views.progress, name="onboarding"),
    path(
        "teams/<slug:slug>/images/look-again",
        views.look_again_at_images,
        name="images-look-again",
    ),
    path("tenancies/<int:pk>/use", use_views.use_it, name="use-it"),
    path("tenancies/<int:pk>/look-again", views.look_again, name="look-again"),
]
