"""What a call was about, by its address: the object that its number or name belongs to, and that object's team."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from django.db.models import Model, QuerySet

from accounts.models import Team
from allocations.models import Allocation
from approvals.models import Request
from fleet.models import Cluster
from notebooks.models import NotebookServer
from provisioning.models import Drift, Tenancy
from workloads.models import Run

OF_ONE = re.compile(r"/(?:api/v1/)?([a-z]+)/([a-z0-9-]+)(?:/.*)?")
# A number that fits a key.
NUMBER = re.compile(r"[0-9]{1,18}")


class Object(NamedTuple):
    """An object as audit events name it, and the team that it is of; None for what is of no team."""

    kind: str
    pk: int
    team_id: int | None


Found = Callable[[str], QuerySet[Model]]


def _numbered(rows: QuerySet[Model]) -> Found:
    return lambda name: (
        rows.filter(pk=int(name)) if NUMBER.fullmatch(name) else rows.none()
    )


# By how an address begins: the kind of object, where it is looked for, and which of its fields is its team.
OBJECTS: Mapping[str, tuple[str, Found, str]] = {
    "requests": ("request", _numbered(Request.objects.all()), "team"),
    "approvals": ("request", _numbered(Request.objects.all()), "team"),
    "runs": ("run", _numbered(Run.objects.all()), "team"),
    "allocations": ("allocation", _numbered(Allocation.objects.all()), "team"),
    "tenancies": ("tenancy", _numbered(Tenancy.objects.all()), "team"),
    "drift": ("drift", _numbered(Drift.objects.all()), "tenancy__team"),
    "notebooks": ("notebook", _numbered(NotebookServer.objects.all()), "team"),
    "teams": ("team", lambda name: Team.objects.filter(slug=name), "pk"),
    "clusters": ("cluster", lambda name: Cluster.objects.filter(name=name), ""),
}


def called_about(path: str) -> Object | None:
    """The object of an address such as /api/v1/requests/12/withdraw/; None for an address of none, or of one not there.

    One query at most.
    """
    found = OF_ONE.fullmatch(path)
    if found is None or found[1] not in OBJECTS:
        return None
    kind, rows, team = OBJECTS[found[1]]
    row = rows(found[2]).values_list("pk", *([team] if team else [])).first()
    if row is None:
        return None
    return Object(kind, row[0], row[-1] if team else None)
