"""The audit package as a Django app."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"
