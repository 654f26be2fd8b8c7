"""Where the pages of offboarding live."""

from django.urls import path

from offboarding import views as leaving_views

urlpatterns = [
    path("teams/<slug:slug>/leaving", leaving_views.overview, name="leaving"),
    path(
        "teams/<slug:slug>/leaving/<int:pk>", leaving_views.departure, name="departure"
    ),
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
    path(
        "tenancies/<int:pk>/protection",
        leaving_views.protection,
        name="tenancy-protection",
    ),
]
