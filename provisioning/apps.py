"""The provisioning package as a Django app."""

from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    name = "provisioning"
