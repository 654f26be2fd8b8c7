"""Where the pages about capacity live."""

from django.urls import path

from insights.capacity import page as capacity
from insights.quota_chain import page as quota_chain

urlpatterns = [
    path("capacity/", capacity.capacity, name="capacity"),
    path("capacity/limits/<int:pk>", capacity.limit, name="limit"),
    path("clusters/<slug:name>/chain", quota_chain.quota_chain, name="quota-chain"),
]
