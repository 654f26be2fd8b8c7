"""Who may sit where: a seat is a role, a named Entra group, or one person."""

from collections.abc import Iterable, Mapping

from django.db.models import QuerySet

from accounts import people
from accounts.actions import object_ids
from accounts.models import User
from accounts.roles import Permission
from approvals.document import ENGINEERING_LEADERSHIP, PLATFORM_LEADS

RIGHTS: Mapping[str, Permission] = {
    PLATFORM_LEADS: Permission.DECIDE_AS_PLATFORM,
    ENGINEERING_LEADERSHIP: Permission.DECIDE_AS_LEADERSHIP,
}


def sits(user: User, seat: str) -> bool:
    """Whether this seat is the person's own now."""
    if seat in RIGHTS:
        return user.may(RIGHTS[seat])
    sort, _, oid = seat.partition(":")
    if not user.is_active:
        return False
    return oid in user.groups if sort == "group" else sort == "person" and oid == str(user.oid)


def seats_of(user: User, givers: Iterable[User]) -> list[str]:
    """Every seat that the person, or who they stand in for, has."""
    seats: set[str] = set()
    for each in (user, *givers):
        if not each.is_active:
            continue
        seats |= {seat for seat, right in RIGHTS.items() if each.may(right)}
        seats |= {f"group:{oid}" for oid in each.groups}
        seats.add(f"person:{each.oid}")
    return sorted(seats)


def holders(seat: str) -> QuerySet[User]:
    """Everybody whose seat it is now."""
    if seat in RIGHTS:
        return people.holding(RIGHTS[seat])
    sort, _, oid = seat.partition(":")
    return people.in_group(oid) if sort == "group" else people.present().filter(oid__in=object_ids([oid]))
