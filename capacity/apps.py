"""The application."""

from django.apps import AppConfig


class CapacityConfig(AppConfig):
    """Azure's quota, pools, reservations and prices."""

    name = "capacity"
