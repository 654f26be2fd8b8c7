"""Finding people: by what their roles give, by group, by object id, and who decides."""

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from accounts.actions import object_ids
from accounts.models import GroupHeld, RoleHeld, User
from accounts.roles import DECIDING, HOLDERS, Permission


def present() -> QuerySet[User]:
    """Everybody whose account is active here and in the directory, as last looked at."""
    return User.objects.filter(is_active=True, pk__in=RoleHeld.objects.values("user"))


def holding(permission: Permission) -> QuerySet[User]:
    """Active people whose roles give this permission."""
    roles = [role.value for role in HOLDERS[permission]]
    return User.objects.filter(
        is_active=True, pk__in=RoleHeld.objects.filter(role__in=roles).values("user")
    )


def in_group(oid: str | UUID) -> QuerySet[User]:
    """Active people who were in this Entra group, nested or not, at the last look; nobody for what is no id."""
    known = object_ids([str(oid)])
    return present().filter(
        pk__in=GroupHeld.objects.filter(group__in=known).values("user")
    )


def of_oids(oids: Iterable[str | UUID]) -> list[User]:
    """The active people with these object ids, in this order; who never signed in is left out."""
    wanted = list(
        dict.fromkeys(oid for given in oids for oid in object_ids([str(given)]))
    )
    found = {str(user.oid): user for user in present().filter(oid__in=wanted)}
    return [found[oid] for oid in wanted if oid in found]


def by_address(text: str) -> User | None:
    """The active person with this work address or sign-in name; None when it is nobody's, or not only one's."""
    wanted = text.strip()
    found = (
        list(present().filter(Q(username__iexact=wanted) | Q(email__iexact=wanted))[:2])
        if wanted
        else []
    )
    return found[0] if len(found) == 1 else None


def reports_of(user: User) -> QuerySet[User]:
    """Active people in whose chain of managers this person is."""
    # Object ids are of one length, so one cannot be found inside another.
    return present().filter(managers__icontains=str(user.oid))


def decides(user: User, *, groups: Collection[str] = ()) -> bool:
    """Whether a seat may be this person's to sit in: by a role, as somebody's manager, or as one of these groups."""
    if any(user.may(permission) for permission in DECIDING):
        return True
    return user.is_active and (
        not set(groups).isdisjoint(user.groups) or reports_of(user).exists()
    )


def at_work(users: Iterable[User], *, now: datetime) -> list[User]:
    """Those who are not out of office, as far as is known; all of them where nobody else is there."""
    everybody = list(users)
    return [user for user in everybody if not user.is_out(now)] or everybody
