"""By which names hubs know people: as a hub told them, and their object ids until it has."""

from collections.abc import Collection, Mapping
from uuid import UUID

from accounts.models import User
from fleet.models import Cluster
from notebooks.hubs.models import Hub, HubAccount


def username_at(hub: Hub, user: User) -> str:
    """The name by which a hub knows a person: their object id where it never told another one."""
    known = HubAccount.objects.filter(hub=hub, user=user).first()
    return known.username if known is not None else str(user.oid)


def people_at(cluster: Cluster, usernames: Collection[str]) -> Mapping[str, User]:
    """Whom the hub of a cluster means by these names; a name that is nobody's is left out. Two queries."""
    told = HubAccount.objects.filter(hub=cluster.pk, username__in=usernames).select_related("user")
    found = {one.username: one.user for one in told}
    oids = {name for name in usernames if name not in found and _is_object_id(name)}
    named = (
        {one.user_id for one in HubAccount.objects.filter(hub=cluster.pk, user__oid__in=oids)}
        if oids
        else set()
    )
    # Whom the hub knows by another name is not whoever took this one.
    return found | {str(one.oid): one for one in User.objects.filter(oid__in=oids).exclude(pk__in=named)}


def _is_object_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
