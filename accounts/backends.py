"""How Django finds the person of a session: by key, and only while the account is active."""

from django.contrib.auth.backends import BaseBackend
from django.db.models import F
from django.http import HttpRequest

from accounts.models import User
from accounts.roles import Role


class EntraBackend(BaseBackend):
    """Authenticates nobody by itself: accounts.views does, with a checked ID token."""

    def authenticate(self, request: HttpRequest | None, **credentials: object) -> None:
        """Always None: there are no credentials to check here."""
        return

    def get_user(self, user_id: int) -> User | None:
        """The active person of this key with the roles held, in one query: every page begins with it."""
        rows = list(User.objects.filter(pk=user_id, is_active=True).annotate(role=F("roles_held__role")))
        if not rows:
            return None
        user = rows[0]
        user.roles = frozenset(Role(row.role) for row in rows if row.role is not None)
        return user
