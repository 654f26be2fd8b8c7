"""The catalogue package as a Django app."""

from django.apps import AppConfig


class CatalogueConfig(AppConfig):
    name = "catalogue"
