"""The accounts package as a Django app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
