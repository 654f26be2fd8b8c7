"""The site map."""

from django.urls import include, path

from portal import views

handler500 = "portal.problems.failed_page"

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("theme", views.theme, name="theme"),
    path("", include("accounts.urls")),
    path("", include("onboarding.urls")),
    path("", include("approvals.urls")),
    path("", include("allocations.urls")),
    path("", include("fleet.urls")),
    path("", include("notices.urls")),
    path("", include("audit.urls")),
    path("", include("portal.pages.urls")),
    path("api/", include("portal.api_urls")),
]
