"""Where the REST API lives: version 1 under /api/v1/, its description under /api/schema/."""

from django.urls import include, path, re_path

from portal import api

urlpatterns = [
    path("", api.Root.as_view(), name="api-root"),
    path("schema/", api.Description.as_view(), name="api-schema"),
    path("docs/", api.Documentation.as_view(url_name="api-schema"), name="api-docs"),
    path("problems", api.problems, name="api-problems"),
    path("backstage/", include("portal.backstage.urls")),
    path("v1/", include((api.nested, "api-v1"))),
    path("v1/", include((api.router.urls, "v1"))),
    re_path("", api.NoSuchAddress.as_view(), name="api-nothing"),
]
