"""The project itself as a Django app: its management commands, template tags and checks."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
