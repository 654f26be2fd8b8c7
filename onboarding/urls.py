"""Where the pages of onboarding live."""

from django.urls import path

from onboarding import parts, views

urlpatterns = [
    path("teams/new", views.wizard, name="onboard"),
    path("teams/new/check", parts.check, name="onboard-check"),
    path("teams/new/groups", parts.groups, name="onboard-groups"),
    path("teams/new/preview", parts.preview, name="onboard-preview"),
    path("teams/<slug:slug>/onboarding", views.progress, name="onboarding"),
    path("tenancies/<int:pk>/look-again", views.look_again, name="look-again"),
]
