"""The provisioning package as a Django app."""

from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    name = "provisioning"

    def ready(self) -> None:
        """Make the models known that have a file of their own."""
        from provisioning.git import commits  # noqa: F401
