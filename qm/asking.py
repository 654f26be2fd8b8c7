"""What is asked for: the team, the kind of GPU, the namespace and the time that a person left to be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from qm import moments
from qm.endings import Code, Ended

Named = Mapping[str, Any]


def team_of(teams: Sequence[Named], slug: str) -> str:
    """The slug of the team that asks; raises Ended where there are several to choose from, or none."""
    if slug:
        return slug
    if not teams:
        raise Ended(
            "You are in no team. Bring one on board (qm onboard), or join the group of one.",
            Code.REFUSED,
        )
    if len(teams) > 1:
        own = ", ".join(one["slug"] for one in teams)
        raise Ended(f"Choose a team with --team: {own}.", Code.USAGE)
    return str(teams[0]["slug"])


def flavor_of(options: Sequence[Named], name: str, *, team: str) -> str:
    """The kind of GPU as cluster/name, from that or from its name alone; raises Ended naming those that there are.

    One that is not offered now may be named, for the portal to refuse with its reason; it is not chosen by itself.
    """
    if not options:
        raise Ended(
            f"Team {team} can ask for no GPUs yet: it needs a namespace on a cluster. Ask for one in the portal.",
            Code.REFUSED,
        )
    found = [
        one["value"]
        for one in options
        if (
            name in (one["value"], one["value"].partition("/")[2])
            if name
            else not one["disabled"]
        )
    ]
    if len(found) == 1:
        return str(found[0])
    known = "\n".join(
        f"  {one['value']}  {one['reason'] or one['label']}" for one in options
    )
    what = (
        "Choose a kind of GPU with --flavor"
        if found or not name
        else f"Team {team} may ask for no kind of GPU {name}"
    )
    raise Ended(f"{what}:\n{known}", Code.USAGE)


def namespace_of(
    projects: Sequence[Named], project: str, *, cluster: str, team: str
) -> str:
    """The namespace of a project on a cluster; raises Ended where there are several to choose from, or none."""
    named = [one for one in projects if one["slug"] == project]
    if not named:
        known = ", ".join(one["slug"] for one in projects) or "none"
        raise Ended(
            f"Team {team} has no project {project}. Its projects: {known}.",
            Code.NOT_FOUND,
        )
    there = [one for one in named[0]["namespaces"] if one["cluster"] == cluster]
    if not there:
        raise Ended(
            f"Project {project} has no namespace on {cluster}. You ask for one in the portal.",
            Code.REFUSED,
        )
    if len(there) > 1:
        names = ", ".join(f"{one['namespace']} ({one['environment']})" for one in there)
        raise Ended(
            f"Project {project} has several namespaces on {cluster}. Choose one with --namespace in the place of "
            f"--project: {names}.",
            Code.USAGE,
        )
    return str(there[0]["namespace"])


def period(given: Named, *, now: datetime) -> dict[str, str]:
    """The time of an ask as the API takes it, from --from, --for and --until; raises Ended without an end."""
    begins = (
        moments.moment(given["begins"], of="--from", is_end=False)
        if given["begins"]
        else None
    )
    ends = end_of(given, after=begins or now)
    if ends is None:
        raise Ended(
            "Say until when: --for 3d, or --until 2026-12-05. The end can be moved later: qm renew.",
            Code.USAGE,
        )
    start = {"starts_at": moments.written(begins)} if begins else {}
    return {**start, "until": moments.written(ends)}


def end_of(given: Named, *, after: datetime) -> datetime | None:
    """The end from --until, or so long `after` a moment from --for; None without, and raises Ended for both."""
    if given["length"] and given["until"]:
        raise Ended("Give --for or --until, not both.", Code.USAGE)
    if given["until"]:
        return moments.moment(given["until"], of="--until", is_end=True)
    if not given["length"]:
        return None
    return after + moments.length(given["length"], of="--for")


def longer(given: Named, *, held_until: datetime, usual: timedelta) -> str:
    """The later end of what is held until a moment, as the API takes it: a usual time later unless told otherwise."""
    return moments.written(end_of(given, after=held_until) or held_until + usual)
