"""The allocations package as a Django app."""

from django.apps import AppConfig


class AllocationsConfig(AppConfig):
    name = "allocations"
