"""What people are told about teams as they come and change; called inside the transaction of what it tells of."""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from accounts.models import CostCentre, Team, User
from notices.actions import take_back, tell, was_told
from notices.kinds import NoticeKind
from notices.message import Message

# Of a team that goes to and fro, who answers for a cost centre is told once in this time.
TOLD_AGAIN_AFTER = timedelta(days=1)


def tell_cost_centre(team: Team, *, by: User, now: datetime) -> None:
    """Tell who answers for a team's cost centre that its costs go there from now on, unless they did it themselves.

    What is still unsent of the one that it has left is taken back.
    """
    kind, about = NoticeKind.COST_CENTRE_JOINED, ("team", team.pk)
    take_back([kind], subject=about)
    rows = CostCentre.objects.confirmed().filter(code__iexact=team.cost_centre)
    centre = rows.exclude(owner=None).exclude(owner=by.pk).select_related("owner")
    found = centre.first()
    if found is None or found.owner is None:
        return
    query = urlencode({"by": "cost_centre", "cost_centre": found.code})
    link = f"{reverse('costs')}?{query}"
    lately = now - TOLD_AGAIN_AFTER
    if was_told(kind, found.owner, subject=about, link=link, since=lately):
        return
    message = Message(
        f"{team.name} spends on {found.code} from now on",
        f"{by.name} put it there. What the team is charged from now on goes to this cost centre, for which you answer. "
        "If that is not so, ask them, or a platform lead, to choose another.",
        facts=(("Team", team.name), ("Group", team.entra_group_name)),
        action="See what it costs",
    )
    tell(kind, to=[found.owner], subject=about, link=link, message=message, now=now)


def tell_owner(team: Team, before: User, *, by: User, now: datetime) -> None:
    """Tell who answers for a team from now on, and who did before: not who did it, nor who sees the team no more."""
    owner, facts = team.accountable, (("Team", team.name), ("Changed by", by.name))
    said = {
        owner: Message(
            f"You answer for {team.name} from now on",
            f"{by.name} made you the owner of the team in place of {before.name}. You lead it: you may change it, have "
            "it leave and stop its notebooks, and you are told what it costs. If that is not so, choose another owner.",
            facts=facts,
            action="See the team",
        ),
        before: Message(
            f"{owner.name} answers for {team.name} from now on",
            f"{by.name} made {owner.name} the owner of the team in your place.",
            facts=facts,
            action="See the team",
        ),
    }
    for person, message in said.items():
        if person != by and Team.objects.visible_to(person).filter(pk=team.pk).exists():
            tell(
                NoticeKind.TEAM_OWNED,
                to=[person],
                subject=("team", team.pk),
                link=reverse("team", args=[team.slug]),
                message=message,
                now=now,
            )
