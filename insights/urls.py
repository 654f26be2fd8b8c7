"""Where the pages about capacity live."""

from django.urls import path

from insights.capacity import page as capacity
from insights.quota_chain import page as quota_chain
from insights.reservations import views as reservations

urlpatterns = [
    path("capacity/", capacity.capacity, name="capacity"),
    path("capacity/limits/<int:pk>", capacity.limit, name="limit"),
    path("capacity/reservations/", reservations.reservations, name="reservations"),
    path("capacity/reservations/<int:pk>", reservations.reservation, name="reservation"),
    path("capacity/reservations/<int:pk>/give-back", reservations.give_back, name="reservation-give-back"),
    path("capacity/reservations/<int:pk>/retry", reservations.retry, name="reservation-retry"),
    path("capacity/orphans/<int:pk>", reservations.orphan, name="orphan"),
    path("clusters/<slug:name>/chain", quota_chain.quota_chain, name="quota-chain"),
]
