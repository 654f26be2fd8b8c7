"""The approvals package as a Django app."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
