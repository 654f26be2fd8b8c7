"""The fleet package as a Django app."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "fleet"
