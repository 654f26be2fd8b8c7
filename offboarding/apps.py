"""The offboarding package as a Django app."""

from django.apps import AppConfig


class OffboardingConfig(AppConfig):
    name = "offboarding"
