"""Where the pages of onboarding live."""

from django.urls import path

from onboarding import (
    isolation_page,
    leaving_views,
    parts,
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
    path("teams/<slug:slug>/settings", team_change_views.settings_of_team, name="team-settings"),
    path("teams/<slug:slug>/projects", project_views.projects, name="team-projects"),
    path("teams/<slug:slug>/onboarding", views.progress, name="onboarding"),
    path("teams/<slug:slug>/leaving", leaving_views.overview, name="leaving"),
    path("teams/<slug:slug>/leaving/<int:pk>", leaving_views.departure, name="departure"),
    path(
        "teams/<slug:slug>/leaving/<int:pk>/export.json",
        leaving_views.take_along,
        {"kind": "json"},
        name="departure-json",
    ),
    path(
        "teams/<slug:slug>/leaving/<int:pk>/export.csv",
        leaving_views.take_along,
        {"kind": "csv"},
        name="departure-csv",
    ),
    path("tenancies/<int:pk>/protection", leaving_views.protection, name="tenancy-protection"),
    path("tenancies/<int:pk>/use", use_views.use_it, name="use-it"),
    path("tenancies/<int:pk>/look-again", views.look_again, name="look-again"),
]
