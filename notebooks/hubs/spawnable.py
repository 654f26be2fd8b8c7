"""What a person may start on a hub now, as KubeSpawner takes it: one entry per namespace and profile."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from accounts.models import User
from fleet.models import Cluster, Flavor
from notebooks.hubs.models import Hub
from notebooks.hubs.people import person_of
from notebooks.places import place_of
from notebooks.profile_desk.kept import offered
from notebooks.profiles.document import Document
from notebooks.profiles.secrets import with_secrets
from notebooks.profiles.spawning import profile_list, spawned_as
from notebooks.servers.models import NotebookServer
from provisioning.models import Tenancy

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Spawnable:
    """KubeSpawner's `profile_list` for somebody; why it is empty where it is.

    `variables` are those of its environments that are from Secrets, for the one server for which was asked.
    """

    username: str
    profiles: Sequence[Json] = field(default_factory=list)
    reason: str = ""
    variables: Sequence[str] = ()


def spawnable(
    hub: Hub, username: str, *, object_id: UUID | None, now: datetime, server: str = ""
) -> Spawnable:
    """What the hub may start for this username now; five queries where the hub told whose it is before, six by name.

    Of the server of that name it has the variables from Secrets that its owner gave it. `hub` comes with its cluster.
    """
    joined = person_of(hub, username, object_id=object_id, now=now)
    if joined.user is None:
        return Spawnable(username=username, reason=joined.reason)
    cluster = hub.cluster
    tenancies = open_on(cluster, joined.user)
    if not tenancies:
        return Spawnable(username=username, reason=_no_namespace(cluster))
    documents = [one.document for one in offered()]
    flavors = {one.name: one for one in Flavor.objects.filter(cluster=cluster)}
    known = _launched(hub, username, joined.user, server) if server else None
    secrets = known.secret_variables if known is not None else []
    profiles = [
        with_secrets(one, secrets)
        if known is not None and one["slug"] == known.user_options["profile"]
        else one
        for one in entries(documents, tenancies, flavors)
    ]
    reason = (
        ""
        if profiles
        else f"No profile can be started in this person's namespaces on {cluster.title}."
    )
    return Spawnable(
        username=username,
        profiles=profiles,
        reason=reason,
        variables=[one.variable for one in secrets],
    )


def _launched(hub: Hub, username: str, user: User, name: str) -> NotebookServer | None:
    """The server of a name that somebody launched in the portal, None for any other."""
    rows = NotebookServer.objects.select_related("profile", "tenancy")
    return rows.filter(
        tenancy__cluster=hub.cluster_id, owner=user, username=username, name=name
    ).first()


def open_on(cluster: Cluster, user: User) -> list[Tenancy]:
    """The namespaces of a person's own teams on a cluster that stand and are not leaving."""
    rows = (
        Tenancy.objects.here()
        .of_member(user)
        .filter(cluster=cluster, observed_generation__gte=1)
    )
    found = list(
        rows.select_related("team", "project").order_by("team__name", "namespace")
    )
    for one in found:
        # A hub asks at each form and each spawn: the widest of the tables is not read once more.
        one.cluster = cluster
    return found


def entries(
    documents: Iterable[Document],
    tenancies: Sequence[Tenancy],
    flavors: Mapping[str, Flavor],
) -> list[Json]:
    """One entry per namespace and profile, of which the first that is a default is the one."""
    documents, found = list(documents), list[Json]()
    for tenancy in tenancies:
        where = (
            f" · {tenancy.team.name}, {tenancy.namespace}" if len(tenancies) > 1 else ""
        )
        for profile in profile_list(documents, place_of(tenancy, flavors)):
            found.append(
                {
                    **profile,
                    "slug": spawned_as(profile["slug"], tenancy.namespace),
                    "display_name": profile["display_name"] + where,
                }
            )
    first = next((one for one in found if one.get("default")), None)
    return [one if one is first else _not_default(one) for one in found]


def _not_default(profile: Json) -> Json:
    return {name: value for name, value in profile.items() if name != "default"}


def _no_namespace(cluster: Cluster) -> str:
    return f"No team of this person has a namespace on {cluster.title}."
