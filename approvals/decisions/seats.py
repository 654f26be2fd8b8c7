"""Who may sit where: a seat is a role, a named Entra group, or one person."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import CharField, Func, QuerySet, Value
from django.db.models.functions import Concat

from accounts import people
from accounts.actions import object_ids
from accounts.models import User
from accounts.roles import Permission
from policy.document import ENGINEERING_LEADERSHIP, MANAGERS, PLATFORM_LEADS

RIGHTS: Mapping[str, Permission] = {
    PLATFORM_LEADS: Permission.DECIDE_AS_PLATFORM,
    ENGINEERING_LEADERSHIP: Permission.DECIDE_AS_LEADERSHIP,
}
# How the seat of one person begins; their object id follows.
PERSON = "person:"
ID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class IdText(Func):
    """An object id as text, with the hyphens that SQLite does not keep."""

    arity = 1
    output_field = CharField()
    template = "CAST(%(expressions)s AS varchar)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The five groups of digits, put together again."""
        parts = [
            f"substr(%(expressions)s, {start}, {length})" for start, length in ID_PARTS
        ]
        return self.as_sql(
            compiler, connection, template=" || '-' || ".join(parts), **context
        )


def written_seat(oid: str) -> Concat:
    """The seat of the person whose object id this column has, for a query."""
    return Concat(Value(PERSON), IdText(oid))


def sits(user: User, seat: str) -> bool:
    """Whether this seat is the person's own now."""
    if seat in RIGHTS:
        return user.may(RIGHTS[seat])
    sort, _, oid = seat.partition(":")
    if not user.is_active:
        return False
    return (
        oid in user.groups
        if sort == "group"
        else sort == "person" and oid == str(user.oid)
    )


def seat_of_person(oid: object) -> str:
    """The seat of one person, by their object id."""
    return f"{PERSON}{oid}"


def is_person(seat: str) -> bool:
    """Whether a seat is one person's, of whom Entra ID told; who has any other is read from the directory by itself."""
    return seat.startswith(PERSON)


def pace_seat(seat: str) -> str:
    """What a seat's pace is counted under: every manager's is one, as nobody's own is said."""
    return MANAGERS if is_person(seat) else seat


def seats_of(user: User, givers: Iterable[User]) -> list[str]:
    """Every seat that the person, or who they stand in for, has."""
    seats: set[str] = set()
    for each in (user, *givers):
        if not each.is_active:
            continue
        seats |= {seat for seat, right in RIGHTS.items() if each.may(right)}
        seats |= {f"group:{oid}" for oid in each.groups}
        seats.add(seat_of_person(each.oid))
    return sorted(seats)


def seats_without_role(user: User) -> QuerySet[Any]:
    """The same of who has no role and stands in for nobody, as a subquery: to ask about them, none is read before."""
    groups = user.groups_held.values_list(Concat(Value("group:"), IdText("group")))
    return groups.union(
        User.objects.filter(pk=user.pk).values_list(Value(seat_of_person(user.oid)))
    )


def holders(seat: str) -> QuerySet[User]:
    """Everybody whose seat it is now."""
    if seat in RIGHTS:
        return people.holding(RIGHTS[seat])
    sort, _, oid = seat.partition(":")
    return (
        people.in_group(oid)
        if sort == "group"
        else people.present().filter(oid__in=object_ids([oid]))
    )
