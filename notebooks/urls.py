"""Where the pages of notebook profiles and hubs live."""

from django.urls import path

from notebooks.hubs import views as hub_views
from notebooks.profile_desk import views

urlpatterns = [
    path("profiles", views.profiles, name="profiles"),
    path("profiles/new", views.profile_new, name="profile-new"),
    path("profiles/import", views.profiles_import, name="profiles-import"),
    path("profiles/export", views.profiles_export, name="profiles-export"),
    path("profiles/<slug:slug>", views.profile, name="profile"),
    path("profiles/<slug:slug>/publish", views.profile_publish, name="profile-publish"),
    path("profiles/<slug:slug>/end", views.profile_end, name="profile-end"),
    path("hubs", hub_views.hubs, name="hubs"),
    path("hubs/<slug:cluster>", hub_views.hub, name="hub"),
    path("hubs/<slug:cluster>/key", hub_views.hub_key, name="hub-key"),
    path(
        "hubs/<slug:cluster>/disconnect",
        hub_views.hub_disconnect,
        name="hub-disconnect",
    ),
]
