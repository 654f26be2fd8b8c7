"""Where signing in and out, personal tokens and tiers live."""

from django.urls import path

from accounts import team_views, views
from accounts.cost_centres import views as cost_centre_views
from accounts.directory import views as directory_views
from accounts.identities import views as identity_views
from accounts.tokens import views as token_views

urlpatterns = [
    path("sign-in", views.sign_in, name="sign-in"),
    path("sign-in/start", views.start, name="sign-in-start"),
    path("sign-in/callback", views.callback, name="sign-in-callback"),
    path("sign-out", views.sign_out, name="sign-out"),
    path("directory", directory_views.directory, name="directory"),
    path("tokens/", token_views.tokens, name="tokens"),
    path("teams/<slug:slug>/tokens", token_views.team_tokens, name="team-tokens"),
    path("teams/<slug:slug>/identities", identity_views.add, name="team-identity-new"),
    path(
        "tokens/identities/<int:pk>/remove",
        identity_views.remove,
        name="team-identity-remove",
    ),
    path("tokens/<slug:prefix>/revoke", token_views.revoke, name="token-revoke"),
    path("cost-centres/", cost_centre_views.cost_centres, name="cost-centres"),
    path(
        "cost-centres/<slug:code>/confirm",
        cost_centre_views.confirm,
        name="cost-centre-confirm",
    ),
    path(
        "cost-centres/<slug:code>/withdraw",
        cost_centre_views.withdraw,
        name="cost-centre-withdraw",
    ),
    path("teams/<slug:slug>/tier", team_views.tier, name="team-tier"),
]
