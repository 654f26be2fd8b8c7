"""The accounts package as a Django app."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        """Have every sign-in start the session's clocks."""
        from accounts.sessions import (
            begin_at_sign_in,
        )  # models and settings are ready only now

        user_logged_in.connect(
            begin_at_sign_in, dispatch_uid="accounts.sessions.begin_at_sign_in"
        )
