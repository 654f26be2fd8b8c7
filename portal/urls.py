"""The site map."""

from django.urls import include, path

from portal import session_views, views
from portal.metrics.views import metrics

handler400 = "portal.http.problems.unreadable_page"
handler500 = "portal.http.problems.failed_page"

urlpatterns = [
    # First: an address of the API would otherwise be held against those of all pages.
    path("api/", include("portal.api_urls")),
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("workz", views.workz, name="workz"),
    path("metrics", metrics, name="metrics"),
    path("theme", views.theme, name="theme"),
    path("rail", views.rail, name="rail"),
    path("session", session_views.state, name="session"),
    path("sign-in/done", session_views.done, name="sign-in-done"),
    path("sign-in/keep", session_views.keep, name="sign-in-keep"),
    path("sign-in/kept", session_views.kept, name="sign-in-kept"),
    path("", include("accounts.urls")),
    path("", include("onboarding.urls")),
    path("", include("offboarding.urls")),
    path("", include("approvals.urls")),
    path("", include("allocations.urls")),
    path("", include("workloads.urls")),
    path("", include("insights.urls")),
    path("", include("notebooks.urls")),
    path("", include("fleet.urls")),
    path("", include("notices.urls")),
    path("", include("audit.urls")),
    path("", include("portal.pages.urls")),
]
