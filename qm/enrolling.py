"""What a new team needs that a person left to be chosen: its group, its cluster, and the kind of its first GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qm.calls import Portal
from qm.endings import Code, Ended

OBJECT_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def group_of(api: Portal, name: str) -> str:
    """The object id of a group by that or by its name, one's own free one for none; raises Ended for none or several.

    One that may not be brought may be named, for the portal to refuse with its reason.
    """
    if OBJECT_ID.fullmatch(name):
        return name
    found = api.get("directory/groups/", q=name)["results"]
    fitting = [
        one
        for one in found
        if (one["label"].casefold() == name.casefold() if name else not one["disabled"])
    ]
    if len(fitting) == 1:
        return str(fitting[0]["value"])
    if not found:
        raise Ended(
            f"No group's name begins with {name}."
            if name
            else "You are in no group that has no team yet. Those of a name: qm groups NAME",
            Code.REFUSED,
        )
    lines = (
        (one["value"], f"{one['label']}  {one['reason']}".rstrip()) for one in found
    )
    raise _several("a group with --group", lines)


def cluster_of(api: Portal, name: str) -> str:
    """The name of a cluster; the only one that takes teams for none, and raises Ended where there are several."""
    if name:
        return name
    rows = api.listed("clusters/", most=None)["results"]
    found = [one for one in rows if one["enabled"] and one["dedicated_to"] is None]
    if len(found) == 1:
        return str(found[0]["name"])
    if not found:
        raise Ended("No cluster takes teams now.", Code.REFUSED)
    lines = ((one["name"], f"{one['title']}, {one['purpose']}") for one in found)
    raise _several("a cluster with --cluster", lines)


def flavor_of(api: Portal, cluster: str, name: str) -> str:
    """The kind of GPU by its name alone; the only one that the cluster offers for none, and raises Ended otherwise."""
    if name:
        return name.partition("/")[2] or name
    rows = api.listed("flavors/", most=None, cluster=cluster)["results"]
    found = [one for one in rows if one["is_offered"] and one["dedicated_to"] is None]
    if len(found) == 1:
        return str(found[0]["name"])
    if not found:
        raise Ended(f"{cluster} offers no GPUs now.", Code.REFUSED)
    lines = (
        (one["name"], f"{one['product']}, {one['free']} of {one['gpus_total']} free")
        for one in found
    )
    raise _several("a kind of GPU with --flavor", lines)


def _several(what: str, lines: Iterable[tuple[object, str]]) -> Ended:
    shown = "\n".join(f"  {name}  {said}" for name, said in lines)
    return Ended(f"Choose {what}:\n{shown}", Code.USAGE)
