"""Where the composed pages live."""

from django.urls import path

from portal.pages import (
    audit,
    audit_event,
    audit_export,
    cluster,
    drift,
    events,
    help_pages,
    palette,
    reach,
    styleguide,
    teams,
)

urlpatterns = [
    path("teams/", teams.teams, name="teams"),
    path("teams/<slug:slug>/", teams.team, name="team"),
    path("clusters/<slug:name>/", cluster.cluster, name="cluster"),
    path(
        "clusters/<slug:name>/release-brake", drift.release_brake, name="release-brake"
    ),
    path("drift/<int:pk>/", drift.drift, name="drift"),
    path("drift/<int:pk>/repair", drift.repair, name="drift-repair"),
    path("drift/<int:pk>/adopt", drift.adopt, name="drift-adopt"),
    path("drift/<int:pk>/give-up", drift.give_up, name="drift-give-up"),
    path("drift/<int:pk>/ignore", drift.ignore, name="drift-ignore"),
    path("drift/<int:pk>/take-up", drift.take_up, name="drift-take-up"),
    path("tenancies/<int:pk>/reach", reach.reach, name="tenancy-reach"),
    path("audit/", audit.audit, name="audit"),
    path("audit/check", audit.check, name="audit-check"),
    path("audit/export", audit_export.export, name="audit-export"),
    path("audit/<int:pk>/", audit_event.event, name="audit-event"),
    path("help/", help_pages.guide, name="help"),
    path("help/<slug:name>/", help_pages.guide, name="help-page"),
    path("help/images/<str:name>", help_pages.picture, name="help-picture"),
    path("palette", palette.palette, name="palette"),
    path("events", events.events, name="events"),
    path("styleguide", styleguide.styleguide, name="styleguide"),
]
