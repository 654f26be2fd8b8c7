"""Where the pages of allocations live."""

from django.urls import path

from allocations import views
from allocations.ends import views as brake_views

urlpatterns = [
    path("allocations/<int:pk>/give-back", views.give_back, name="give-back"),
    path("allocations/held-back", brake_views.held_back, name="ends-held-back"),
    path("teams/<slug:slug>/budget", views.budget, name="team-budget"),
    path("teams/<slug:slug>/budget/<str:month>", views.ledger, name="team-ledger"),
]
