"""The project itself as a Django app: its management commands, template tags and checks."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        """Let the frameworks speak the product's language."""
        from web import framework_words  # settings are ready only now

        framework_words.apply()
