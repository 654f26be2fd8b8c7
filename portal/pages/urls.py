"""Where the composed pages live."""

from django.urls import path

from portal.pages import audit, cluster, events, palette, styleguide, teams

urlpatterns = [
    path("teams/", teams.teams, name="teams"),
    path("teams/<slug:slug>/", teams.team, name="team"),
    path("clusters/<slug:name>/", cluster.cluster, name="cluster"),
    path("audit/", audit.audit, name="audit"),
    path("audit/check", audit.check, name="audit-check"),
    path("palette", palette.palette, name="palette"),
    path("events", events.events, name="events"),
    path("styleguide", styleguide.styleguide, name="styleguide"),
]
