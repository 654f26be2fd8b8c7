"""The policy package as a Django app."""

from django.apps import AppConfig


class PolicyConfig(AppConfig):
    name = "policy"
