"""Whose a username of a hub is, and by which one it knows somebody: joined by object id, never guessed from a name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from accounts.models import RoleHeld, User
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster
from notebooks.hubs.models import Hub, HubAccount

NOBODY = "The portal knows nobody with this object id: they sign in to it once."
UNTOLD = (
    "The portal does not know whose account this is: the hub has to tell its object id."
)
ANOTHERS = "This username is another person's on this hub."
OTHERWISE = "This person has another username on this hub."
SUSPENDED = "This person has no access to the portal now."


@dataclass(frozen=True)
class Joined:
    """Whose a username is, or why it is nobody's who may start anything."""

    user: User | None = None
    reason: str = ""


def person_of(
    hub: Hub, username: str, *, object_id: UUID | None, now: datetime
) -> Joined:
    """Whose a username is, which is stored when the hub tells it for the first time, or tells a new name of somebody.

    Without an object id the username may be one itself, of a person whom the hub knows by no other name. Two queries
    at most where nothing is stored.
    """
    as_id = _uuid(username)
    oid = object_id or as_id
    has_role = Exists(RoleHeld.objects.filter(user=OuterRef("user")))
    accounts = HubAccount.objects.filter(
        Q(username=username) | Q(user__oid=oid), hub=hub
    )
    found = list(accounts.select_related("user").annotate(has_role=has_role))
    named = next((one for one in found if one.username == username), None)
    if named is not None:
        if object_id is not None and named.user.oid != object_id:
            return Joined(reason=ANOTHERS)
        return _if_active(named.user, has_role=named.has_role)
    if oid is None:
        return Joined(reason=UNTOLD)
    if found and object_id is None:
        return Joined(reason=OTHERWISE)
    return _first_seen(hub, username, oid, as_id, now)


def _first_seen(
    hub: Hub, username: str, oid: UUID, as_id: UUID | None, now: datetime
) -> Joined:
    has_role = Exists(RoleHeld.objects.filter(user=OuterRef("pk")))
    rows = User.objects.filter(oid__in=[oid, as_id or oid]).annotate(has_role=has_role)
    people = {one.oid: one for one in rows}
    user = people.get(oid)
    if user is None:
        return Joined(reason=NOBODY)
    if as_id not in (None, oid) and as_id in people:
        # The name under which the portal itself would start that person's servers.
        return Joined(reason=ANOTHERS)
    try:
        _keep_name(hub, user, username, now)
    except IntegrityError:
        # Told twice at one time: the other one may have been for somebody else.
        kept = HubAccount.objects.filter(hub=hub, user=user, username=username)
        if not kept.exists():
            return Joined(reason=ANOTHERS)
    return _if_active(user, has_role=user.has_role)


def username_at(hub: Hub, user: User) -> str:
    """The name by which a hub knows a person: their object id where it never told another one."""
    known = HubAccount.objects.filter(hub=hub, user=user).first()
    return known.username if known is not None else str(user.oid)


def people_at(cluster: Cluster, usernames: Collection[str]) -> Mapping[str, User]:
    """Whom the hub of a cluster means by these names; a name that is nobody's is left out. Two queries at most."""
    told = HubAccount.objects.filter(
        hub=cluster.pk, username__in=usernames
    ).select_related("user")
    found = {one.username: one.user for one in told}
    oids = {
        oid: name for name in usernames if name not in found and (oid := _uuid(name))
    }
    if not oids:
        return found
    # Whom the hub knows by another name is not whoever took this one.
    named = HubAccount.objects.filter(hub=cluster.pk, user__oid__in=oids).values("user")
    rest = User.objects.filter(oid__in=oids).exclude(pk__in=named)
    return found | {oids[one.oid]: one for one in rest}


@transaction.atomic
def _keep_name(hub: Hub, user: User, username: str, now: datetime) -> None:
    before = (
        HubAccount.objects.select_for_update(no_key=True)
        .filter(hub=hub, user=user)
        .first()
    )
    HubAccount.objects.update_or_create(
        hub=hub, user=user, defaults={"username": username, "first_seen_at": now}
    )
    record(
        Kind.HUB_NAMED_PERSON,
        actor=PORTAL,
        subject=("hub", hub.cluster.name),
        username=username,
        person=str(user.oid),
        before=before.username if before else "",
    )


def _if_active(user: User, *, has_role: bool) -> Joined:
    return Joined(user) if user.is_active and has_role else Joined(reason=SUSPENDED)


def _uuid(text: str) -> UUID | None:
    """The object id that a username is, written as Entra ID writes them."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None
