"""Taking back: who is not of a team and ends what it holds says why, and the team is told."""

from datetime import datetime

from accounts.models import User
from accounts.teams import Team
from allocations.models import Allocation
from allocations.notices import tell_given_back, tell_taken_back
from web.refusals import BadInput


def checked_reason(team: Team, by: User, reason: str) -> str:
    """Why somebody ends what their team does not hold; empty for who ends what is theirs. Raises BadInput for none."""
    if team.pk in by.team_ids:
        return ""
    tidy = " ".join(reason.split())
    if not tidy:
        raise BadInput(
            f"Say why: {team.name} is told that you take it back.",
            code="reason_needed",
            field="reason",
        )
    return tidy


def keep_reason(
    over: Allocation, because: str, *, by: str, now: datetime
) -> dict[str, str]:
    """Keep why a locked allocation was taken back, and tell its team; returns what the audit event says of it.

    Nothing is kept or told where `because` is empty: then the team ended it by itself.
    """
    if not because:
        return {}
    over.taken_back_because = because
    over.save(update_fields=["taken_back_because"])
    tell_taken_back(over, by=by, now=now)
    return {"taken_back_because": because}


def tell_requester(over: Allocation, *, by: User, now: datetime) -> None:
    """Tell who asked for it that somebody else of the team gave it back; a team is told of what is taken from it."""
    who = over.requester
    if who.pk != by.pk and over.team_id in by.team_ids and over.team_id in who.team_ids:
        tell_given_back(over, by=by.name, now=now)
