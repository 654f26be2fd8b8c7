"""The page on which a team is changed: what follows is shown before it is done."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_user import add_refusal, sent, visitor, with_refusal
from accounts.directory.client import graph
from accounts.models import Team, User
from connectors.errors import ConnectorError
from onboarding.team_changes import (
    Effects,
    TeamChange,
    change_team,
    effects,
    group_of_change,
    may_change,
)
from web.edits import KeepsOthersEdits
from web.fields import StrictForm, set_choices
from web.refusals import BadInput, Refused


class TeamForm(KeepsOthersEdits, StrictForm):
    """What a team is called, who pays, who is in it, and who answers for it; `check` only shows what follows."""

    also = KeepsOthersEdits.also | {"check"}

    name = forms.CharField(
        label="Name",
        max_length=60,
        help_text="As people say it, in any script. The short name in addresses and on clusters stays.",
        widget=forms.TextInput(
            attrs={"dir": "auto", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    cost_centre = forms.CharField(
        label="Cost centre",
        max_length=20,
        help_text="Letters, digits and hyphens, such as CC-4711.",
    )
    entra_group = forms.CharField(
        label="Group",
        max_length=36,
        help_text="The object id of the Entra group whose members are the team.",
    )
    owner = forms.ChoiceField(
        label="Owner",
        help_text="Answers for the team and may change it, as its leads may.",
        error_messages={"invalid_choice": "Choose a member of the team’s group."},
    )

    def __init__(self, data: Any, *, team: Team) -> None:
        usual = {
            "name": team.name,
            "cost_centre": team.cost_centre,
            "entra_group": str(team.entra_group),
            "owner": str(team.accountable.oid),
        }
        super().__init__(data, initial=usual, label_suffix="")
        self.team = team
        people = User.objects.filter(
            memberships__team=team, is_active=True, pipelines_of=None
        ) | User.objects.filter(pk=team.accountable.pk)
        self.people = {
            str(user.oid): user for user in people.distinct().order_by("name")
        }
        set_choices(
            self, "owner", [(oid, user.name) for oid, user in self.people.items()]
        )

    def change(self, *, by: User) -> TeamChange:
        """What a clean form changes, with its group asked of the directory; raises Refused or ConnectorError."""
        values = self.cleaned_data
        owner = self.people[values["owner"]]
        return TeamChange(
            name=values["name"] if values["name"] != self.team.name else "",
            cost_centre=values["cost_centre"]
            if values["cost_centre"] != self.team.cost_centre
            else "",
            group=group_of_change(
                self.team, values["entra_group"], by=by, graph=graph()
            ),
            owner=owner if owner.pk != self.team.accountable.pk else None,
        )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def settings_of_team(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a team: POST with `check` shows what follows, without it does it."""
    user = visitor(request)
    teams = Team.objects.visible_to(user).select_related("owner", "created_by")
    team = get_object_or_404(teams, slug=slug)
    if not may_change(team, user):
        raise PermissionDenied(
            "The team’s owner, its leads and platform leads change it."
        )
    form, status = TeamForm(sent(request), team=team), 200
    found: Effects | None = None
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                change = form.change(by=user)
                found = effects(team, change)
                if "check" in request.POST:
                    status = 200
                else:
                    return _changed(request, team, change, by=user)
            except Refused as refusal:
                status = add_refusal(form, refusal)
            except ConnectorError as error:
                words = f"The directory cannot say whether it is yours: {error.message}"
                status = add_refusal(
                    form, BadInput(words, code="directory", field="entra_group")
                )
    context = {"team": team, "form": form, "effects": found}
    response = render(request, "onboarding/team_settings.html", context, status=status)
    return with_refusal(response, form) if status != 200 else response


def _changed(
    request: HttpRequest, team: Team, change: TeamChange, *, by: User
) -> HttpResponse:
    done = change_team(team, change, by=by, now=timezone.now())
    if done.fields:
        follows = " Its namespaces follow within seconds." if done.clusters else ""
        messages.success(request, f"The team is changed.{follows}")
    else:
        messages.info(request, "Nothing is different from before.")
    return redirect("team", team.slug)
