"""Audit events as people say them: what happened, and who did it."""

from collections.abc import Mapping

from audit.events import Kind
from audit.models import Event
from ui.amounts import listed

SENTENCES: Mapping[str, str] = {
    Kind.REQUEST_SUBMITTED: "Asked for {what}",
    Kind.REQUEST_EDITED: "Now asks for {what}",
    Kind.REQUEST_APPROVED: "{what} approved",
    Kind.REQUEST_REJECTED: "{what} rejected",
    Kind.REQUEST_WITHDRAWN: "{what} taken back",
    Kind.REQUEST_LAPSED: "{what} lapsed: nobody decided in time",
    Kind.ALLOCATION_ISSUED: "{what} given to the team",
    Kind.ALLOCATION_RETURNED: "{what} given back",
    Kind.ALLOCATION_RENEWED: "Went on under a renewal: {what}",
    Kind.ALLOCATION_EXPIRED: "{what} reached the end",
    Kind.ALLOCATION_READY: "Set up: {what}",
    Kind.ALLOCATION_FAILED: "{what} could not be made",
    Kind.TENANCY_CONVERGED: "All objects ready on the cluster",
    Kind.TENANCY_FAILED: "Could not be set up",
    Kind.TENANCY_PARKED: "Tried no more",
    Kind.DRIFT_REPAIRED: "A change from elsewhere was put right",
    Kind.TEAM_CREATED: "Team created",
    Kind.TEAM_CHANGED: "Team changed",
    Kind.COST_CENTRE_CONFIRMED: "Cost centre {code} confirmed",
    Kind.COST_CENTRE_WITHDRAWN: "Cost centre {code} not confirmed any more",
    Kind.COST_CENTRE_OWNED: "{owner} answers for cost centre {code}",
    Kind.NOTEBOOK_LAUNCHED: "Notebook {name} launched",
    Kind.NOTEBOOK_READY: "Notebook {name} came up",
    Kind.NOTEBOOK_FAILED: "Notebook {name} did not start",
    Kind.NOTEBOOK_STOPPED: "Notebook {name} is to stop",
    Kind.NOTEBOOK_ENDED: "Notebook {name} stopped",
    Kind.RUN_SUBMITTED: "Run {name} submitted",
    Kind.RUN_STARTED: "Run {name} began",
    Kind.RUN_STOPPED: "Run {name} is to stop",
    Kind.RUN_LIMIT_CHANGED: "Run {name} has another time limit",
    Kind.RUN_ENDED: "Run {name} ended",
    Kind.BUDGET_SOFT_REACHED: "{percent} % of the {part} of {month} set aside",
}

# What became of a token; one of a team says whose it is.
TOKENS: Mapping[str, str] = {
    Kind.TOKEN_CREATED: "Token {name}{of_team} created",
    Kind.TOKEN_REVOKED: "Token {name}{of_team} revoked",
}

# What one person of a team did, and what several did.
PARTS: Mapping[str, tuple[str, str]] = {
    "joined": ("joined the team", "joined the team"),
    "left": ("left the team", "left the team"),
    "leads": ("leads it", "lead it"),
    "no_longer_leads": ("no longer leads it", "no longer lead it"),
}

# Of events from before it was written down.
UNKNOWN = {
    "what": "GPUs",
    "gpus": "",
    "flavor": "GPUs",
    "returned": "",
    "renewed": "",
    "percent": "",
    "part": "budget",
    "code": "",
    "owner": "",
    "month": "",
    "name": "",
}


def sentence(
    event: Event, *, products: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """What happened without who did it, and who did it; `products` puts the names people use for flavors."""
    if event.kind == Kind.TASK_ASSIGNED:
        return _assigned(event), ""
    if event.kind == Kind.MEMBERS_CHANGED:
        return _members(event), event.actor_name
    if event.kind in TOKENS:
        return _token(event), event.actor_name
    if event.kind not in SENTENCES:
        return f"{event.actor_name} {event.words}", ""
    if event.details.get("taken_back_because"):
        return f"{event.details.get('what', 'GPUs')} taken back for the platform", (
            event.actor_name
        )
    details = {**UNKNOWN, **event.details}
    details["flavor"] = (products or {}).get(details["flavor"], details["flavor"])
    return SENTENCES[event.kind].format_map(details), event.actor_name


def _members(event: Event) -> str:
    """Who came into a team, left it, and began or ceased to lead it: "Ada and Ben joined the team. Ada leads it".

    Of the same people all is said at once: "Ada joined the team and leads it".
    """
    done: dict[tuple[str, ...], list[str]] = {}
    for key, (one, more) in PARTS.items():
        if names := tuple(event.details.get(key, ())):
            done.setdefault(names, []).append(one if len(names) == 1 else more)
    return ". ".join(f"{listed(names)} {listed(what)}" for names, what in done.items())


def _token(event: Event) -> str:
    """What became of a token, by its name and its team's: "Token nightly of Vision created"."""
    team = event.details.get("of_team")
    return TOKENS[event.kind].format(
        name=event.details.get("name", ""), of_team=f" of {team}" if team else ""
    )


def _assigned(event: Event) -> str:
    """Who took a task, gave it to somebody, or laid it down."""
    to = str(event.details.get("to", ""))
    if to == event.actor_name:
        return f"{event.actor_name} took the task"
    return (
        f"{event.actor_name} gave the task to {to}"
        if to
        else f"{event.actor_name} laid the task down"
    )
