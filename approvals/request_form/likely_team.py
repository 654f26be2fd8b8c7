"""For which of their teams somebody probably asks."""

from accounts.models import User
from approvals.models import Request


def last_team(user: User) -> str:
    """The short name of the team for which a person of several asked last; empty where there is none."""
    if len(user.teams) < 2:
        return ""
    asked = Request.objects.filter(requester=user, team__in=user.teams)
    slugs = asked.order_by("-created_at", "-id").values_list("team__slug", flat=True)
    return slugs.first() or ""
