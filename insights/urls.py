"""Where the pages about capacity live."""

from django.urls import path

from insights.capacity import limit_page
from insights.capacity import page as capacity
from insights.costs import page as costs
from insights.failed_runs import page as failed_runs
from insights.model_endpoints import views as model_endpoints
from insights.prices import page as prices
from insights.quota_chain import page as quota_chain
from insights.reservations import views as reservations
from insights.utilisation import page as utilisation

urlpatterns = [
    path("costs/", costs.costs, name="costs"),
    path("costs/file", costs.costs_file, name="costs-file"),
    path("capacity/", capacity.capacity, name="capacity"),
    path("capacity/utilisation", utilisation.utilisation, name="utilisation"),
    path(
        "capacity/utilisation/file",
        utilisation.utilisation_file,
        name="utilisation-file",
    ),
    path("capacity/failed-runs", failed_runs.failed, name="failed-runs"),
    path("capacity/prices", prices.prices, name="prices"),
    path("capacity/prices/<int:pk>", prices.price, name="price"),
    path("capacity/prices/<int:pk>/confirm", prices.confirm, name="price-confirm"),
    path("capacity/reservations/", reservations.reservations, name="reservations"),
    path(
        "capacity/reservations/<int:pk>", reservations.reservation, name="reservation"
    ),
    path(
        "capacity/reservations/<int:pk>/give-back",
        reservations.give_back,
        name="reservation-give-back",
    ),
    path(
        "capacity/reservations/<int:pk>/retry",
        reservations.retry,
        name="reservation-retry",
    ),
    path(
        "capacity/models/<int:pk>",
        model_endpoints.model_endpoint,
        name="model-endpoint",
    ),
    path(
        "capacity/models/<int:pk>/retry",
        model_endpoints.retry,
        name="model-endpoint-retry",
    ),
    path("capacity/orphans/<int:pk>", reservations.orphan, name="orphan"),
    path("capacity/limits/<int:pk>", limit_page.limit, name="limit"),
    path(
        "capacity/increases/<int:pk>/withdraw",
        limit_page.withdraw,
        name="increase-withdraw",
    ),
    path(
        "capacity/subscriptions/<slug:pk>/check",
        capacity.check_subscription,
        name="subscription-check",
    ),
    path("clusters/<slug:name>/chain", quota_chain.quota_chain, name="quota-chain"),
]
