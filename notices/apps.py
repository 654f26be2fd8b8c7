"""The notices package as a Django app."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "notices"
