"""Where the pages about capacity live."""

from django.urls import path

from insights.capacity import page as capacity
from insights.prices import page as prices
from insights.quota_chain import page as quota_chain

urlpatterns = [
    path("capacity/", capacity.capacity, name="capacity"),
    path("capacity/limits/<int:pk>", capacity.limit, name="limit"),
    path("capacity/prices", prices.prices, name="prices"),
    path("capacity/prices/<int:pk>", prices.price, name="price"),
    path("capacity/prices/<int:pk>/confirm", prices.confirm, name="price-confirm"),
    path("clusters/<slug:name>/chain", quota_chain.quota_chain, name="quota-chain"),
]
