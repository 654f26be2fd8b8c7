"""How Django finds the person of a session: by key, and only while the account is active."""

from django.contrib.auth.backends import BaseBackend
from django.db.models import Exists, F, OuterRef, Subquery
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import Contact, Delegation, Membership, User
from accounts.roles import Role


class EntraBackend(BaseBackend):
    """Authenticates nobody by itself: accounts.views does, with a checked ID token."""

    def authenticate(self, request: HttpRequest | None, **credentials: object) -> None:
        """Always None: there are no credentials to check here."""
        return

    def get_user(self, user_id: int) -> User | None:
        """The active person of this key with the roles held, in one query: every page begins with it.

        It also reads since when the directory has not answered, which the frame of the page says, and whether the
        person is in any team, stands in for anybody and is asked to: most are asked for nothing more then.
        """
        silent = Subquery(Contact.objects.silent_since()[:1])
        lent = Exists(
            Delegation.objects.in_force(timezone.now()).filter(to=OuterRef("pk"))
        )
        asked = Exists(
            Delegation.objects.invited(timezone.now()).filter(to=OuterRef("pk"))
        )
        joined = Exists(Membership.objects.filter(user=OuterRef("pk")))
        people = User.objects.filter(pk=user_id, is_active=True)
        rows = list(
            people.annotate(
                role=F("roles_held__role"),
                silent=silent,
                lent=lent,
                asked=asked,
                joined=joined,
            )
        )
        if not rows:
            return None
        user = rows[0]
        user.roles = frozenset(Role(row.role) for row in rows if row.role is not None)
        user.directory_silent_since = user.silent
        user.stands_in, user.is_invited = user.lent, user.asked
        if not user.joined:
            user.teams = ()
        return user
