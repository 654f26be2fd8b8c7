"""Where the pages of fleet live."""

from django.urls import path

from fleet import views
from fleet.versions.views import versions

urlpatterns = [
    path("clusters/", views.clusters, name="clusters"),
    path("clusters/versions", versions, name="versions"),
    path("clusters/new", views.cluster_new, name="cluster-new"),
    path("clusters/<slug:name>/edit", views.cluster_edit, name="cluster-edit"),
    path(
        "clusters/<slug:name>/accept-identity",
        views.accept_identity,
        name="accept-identity",
    ),
    path(
        "clusters/<slug:name>/accept-capacity",
        views.accept_capacity,
        name="accept-capacity",
    ),
    path("clusters/<slug:name>/remove", views.cluster_remove, name="cluster-remove"),
    path(
        "clusters/<slug:name>/write-off",
        views.cluster_write_off,
        name="cluster-write-off",
    ),
    path("clusters/<slug:name>/flavors/new", views.flavor_new, name="flavor-new"),
    path(
        "clusters/<slug:name>/flavors/<slug:flavor>",
        views.flavor_edit,
        name="flavor-edit",
    ),
    path(
        "clusters/<slug:name>/flavors/<slug:flavor>/remove",
        views.flavor_remove,
        name="flavor-remove",
    ),
]
