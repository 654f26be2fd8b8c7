"""The manual package as a Django app."""

from django.apps import AppConfig


class ManualConfig(AppConfig):
    name = "manual"
