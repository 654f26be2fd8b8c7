"""The Entra groups that somebody may bring, and why not the others."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.core.cache import cache

from accounts.models import Team, User
from accounts.roles import Permission
from connectors.graph import Graph, Group

logger = logging.getLogger(__name__)
MOST = 8
A_WHILE = 600


@dataclass(frozen=True)
class Offer:
    """A group in the list; `why_not` says why it cannot be chosen, empty when it can."""

    oid: str
    name: str
    description: str
    why_not: str

    @property
    def is_free(self) -> bool:
        """Whether it can be chosen."""
        return not self.why_not


def offers(user: User, *, text: str, graph: Graph) -> list[Offer]:
    """Groups whose names begin like the text, or the person's own for a blank one; free ones first.

    Raises ConnectorError when the directory does not answer.
    """
    own = graph.groups_of(str(user.oid))
    found = (
        graph.find_groups(text, MOST)
        if text.strip()
        else _named(_without_team(own), graph)
    )
    taken = _teams_of((group.oid for group in found), user)
    anybody = user.may(Permission.ONBOARD_ANY_GROUP)
    rows = [_offer(group, taken=taken, own=own, anybody=anybody) for group in found]
    return sorted(rows, key=lambda row: (not row.is_free, row.name.casefold()))


def _offer(
    group: Group, *, taken: dict[str, str], own: set[str], anybody: bool
) -> Offer:
    if group.oid in taken:
        why_not = f"It is {taken[group.oid] or 'another team'}’s already."
    elif group.oid not in own and not anybody:
        why_not = "You are not a member of it."
    else:
        why_not = ""
    return Offer(group.oid, group.name, group.description, why_not)


def _teams_of(oids: Iterable[str], user: User) -> dict[str, str]:
    """The names of the teams that have these groups; an empty one of a team that this person may not see."""
    rows = Team.objects.filter(entra_group__in=list(oids))
    seen = set(rows.visible_to(user).values_list("entra_group", flat=True))
    named = rows.values_list("entra_group", "name")
    return {str(oid): name if oid in seen else "" for oid, name in named}


def _without_team(own: set[str]) -> list[str]:
    taken = {str(oid) for oid in Team.objects.values_list("entra_group", flat=True)}
    return sorted(own - taken)


def _named(oids: Sequence[str], graph: Graph) -> list[Group]:
    """The first few groups with their names, which are asked for once in ten minutes."""
    known = _kept(_key(oid) for oid in oids[:MOST])
    found = []
    for oid in oids[:MOST]:
        group = _cached_group(oid, known.get(_key(oid)))
        if group is None:
            group = graph.group(oid)
            if group is not None:
                _keep(_key(oid), [group.name, group.description])
        if group is not None:
            found.append(group)
    return found


def _cached_group(oid: str, value: object) -> Group | None:
    """The group whose name and description are in the cache; None for anything else that lies under its key."""
    match value:
        case [str(name), str(description)]:
            return Group(oid, name, description)
    return None


def _kept(keys: Iterable[str]) -> dict[str, object]:
    """What the cache holds; nothing while it does not answer, whatever its client raises: the directory is asked."""
    try:
        return dict(cache.get_many(list(keys)))
    except Exception as error:
        logger.warning(
            "names of groups are not kept", extra={"error": type(error).__name__}
        )
        return {}


def _keep(key: str, value: list[str]) -> None:
    with suppress(Exception):  # told of when reading
        cache.set(key, value, A_WHILE)


def _key(oid: str) -> str:
    return f"entra-group:{oid}"
