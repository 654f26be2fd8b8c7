"""What people are told about teams as they come and change; called inside the transaction of what it tells of."""

from datetime import datetime

from django.urls import reverse

from accounts.models import CostCentre, Team, User
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message


def tell_cost_centre(team: Team, *, by: User, now: datetime) -> None:
    """Tell who answers for a team's cost centre that its costs go there from now on, unless they did it themselves."""
    rows = CostCentre.objects.confirmed().filter(code__iexact=team.cost_centre)
    centre = rows.exclude(owner=None).exclude(owner=by.pk).select_related("owner")
    found = centre.first()
    if found is None or found.owner is None:
        return
    message = Message(
        f"{team.name} spends on {found.code} from now on",
        f"{by.name} put it there. What the team is charged from now on goes to this cost centre, for which you answer. "
        "If that is not so, ask them, or a platform lead, to choose another.",
        facts=(("Team", team.name), ("Group", team.entra_group_name)),
        action="See what it costs",
    )
    tell(
        NoticeKind.COST_CENTRE_JOINED,
        to=[found.owner],
        subject=("team", team.pk),
        link=f"{reverse('costs')}?by=cost_centre",
        message=message,
        now=now,
    )
