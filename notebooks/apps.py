"""The notebooks package as a Django app."""

from django.apps import AppConfig


class NotebooksConfig(AppConfig):
    name = "notebooks"
