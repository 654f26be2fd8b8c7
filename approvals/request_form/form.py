"""The form of an offering, made from its typed spec, so that form, API and policy never disagree about a field."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from django import forms
from django.utils import timezone

from accounts.models import Team
from allocations.bookings.actions import start_of
from approvals.request_form.fields import field_for, in_groups
from approvals.request_form.quick_ends import quick_end
from approvals.requests.actions import LEAST_REASON
from approvals.requests.namespaces import NamespaceField, choices_on, offer
from approvals.requests.wanted import Wanted, resolve
from catalogue.choices import (
    Choice,
    choices_of,
    depends_on_team,
    fields_of,
    is_suggested,
)
from catalogue.models import OfferingSetting
from catalogue.namespace import NamespaceSpec
from catalogue.offering import Offering
from provisioning.models import Tenancy
from web.fields import INPUT, LONGEST_TEXT, MomentField, StrictForm, set_choices

# What a form starts with, where a number is better than none.
STARTS: Mapping[str, str] = {
    "gib": "100",
    "thousand_tokens_per_minute": "50",
    "instances": "1",
    "nodes": "2",
    "replicas": "1",
    "gpus_per_replica": "1",
    "access": "ReadWriteMany",
}


Lists = Mapping[str, Sequence[Choice]]


class RequestForm(StrictForm):
    """What to ask for. `token` makes a second sending harmless, `answered` is what the shown answer was about.

    `same` is the request for the same of which the answer told, 0 for none.

    With `follows_team`, where nothing is sent yet, what the team cannot have becomes the first that it can have.
    `lists` are what the team can choose from, where that was read already.
    """

    also = StrictForm.also | {"check", "quick"}

    team = forms.ChoiceField(
        error_messages={"invalid_choice": "Choose one of your teams."}
    )
    namespace = NamespaceField()
    starts_at = MomentField(
        label="From (UTC)",
        required=False,
        help_text="Empty: at once. Later: it is booked, and begins by itself.",
    )
    until = MomentField(label="Until (UTC)")
    reason = forms.CharField(
        label="Why",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="A person decides this one. What is it for, why this much, and what if you get less? "
        f"At least {LEAST_REASON} characters.",
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    answered = forms.CharField(widget=forms.HiddenInput, max_length=300, required=False)
    same = forms.CharField(widget=forms.HiddenInput, max_length=20, required=False)

    def __init__(
        self,
        data: Any,
        *,
        offering: Offering,
        setting: OfferingSetting,
        teams: Sequence[Team],
        follows_team: bool = False,
        lists: Lists | None = None,
    ) -> None:
        super().__init__(data, label_suffix="")
        self.offering, self.setting, self.teams = offering, setting, teams
        set_choices(self, "team", [(each.slug, each.name) for each in teams])
        self.fields["reason"].help_text += f" For example: “{offering.good_reason}”"
        if not offering.may_begin_later:
            del self.fields["starts_at"]
        self.asked = fields_of(offering)
        self.suggested: dict[str, list[str]] = {}
        self.unwritten: list[str] = []
        lists = lists or choices_of(
            offering, setting, team=self._team(str(data.get("team", "")))
        )
        for name, schema in self.asked.items():
            self.fields[name] = field_for(offering, name, schema, lists.get(name))
            if is_suggested(schema):
                self.suggested[f"{name}-list"] = [
                    line.value for line in lists.get(name, [])
                ]
            if depends_on_team(schema):
                self._fit(name, lists[name], follows_team=follows_team)
        self._offer_namespaces()

    def _fit(self, name: str, lines: Sequence[Choice], *, follows_team: bool) -> None:
        """Show nothing as chosen that was not said: take the first that is possible, or ask to choose."""
        possible = [line for line in lines if not line.reason]
        said = self.data
        if not possible or said.get(name) in {line.value for line in possible}:
            return
        if follows_team:
            self.data = {key: said[key] for key in said} | {name: possible[0].value}
        else:
            set_choices(self, name, [("", "Choose one"), *in_groups(possible)])

    def _offer_namespaces(self) -> None:
        """Ask for the namespace where the team has several on the cluster that is named."""
        team, tenancies = (
            self._team(str(self.data.get("team", ""))),
            Tenancy.objects.none(),
        )
        named = str(
            self.data.get("flavor") or self.data.get("cluster") or ""
        ).partition("/")[0]
        if team is not None and named and self.offering.spec is not NamespaceSpec:
            here = Tenancy.objects.here().filter(team=team, cluster__name=named)
            tenancies = here.select_related("cluster", "project")
        offer(self, choices_on(tenancies, named))

    def _team(self, slug: str) -> Team | None:
        return next((team for team in self.teams if team.slug == slug), None)

    @property
    def dependent(self) -> list[str]:
        """The fields whose choices follow the team."""
        return [name for name, schema in self.asked.items() if depends_on_team(schema)]

    @property
    def how_many(self) -> forms.BoundField | None:
        """The field that says how many units; it stands beside the end, for the two make the price."""
        counted = self.offering.spec.counted
        return self[counted] if counted else None

    @property
    def begins(self) -> forms.BoundField | None:
        """The field that says from when on; None for what always begins at once."""
        return self["starts_at"] if "starts_at" in self.fields else None

    @property
    def fields_before(self) -> list[forms.BoundField]:
        """The fields of the spec that say what and where, in front of how many and until when."""
        names = list(self.asked)
        counted = self.offering.spec.counted
        return [
            self[name] for name in (names[: names.index(counted)] if counted else names)
        ]

    @property
    def fields_after(self) -> list[forms.BoundField]:
        """The fields of the spec that say how it is to be used."""
        names = list(self.asked)
        counted = self.offering.spec.counted
        return [
            self[name]
            for name in (names[names.index(counted) + 1 :] if counted else [])
        ]

    @property
    def is_answerable(self) -> bool:
        """Whether enough of it is clean to judge it; the reason may still be missing."""
        self.is_valid()
        needed = {"team", "until", *self.asked} | ({"starts_at"} & self.fields.keys())
        return needed <= getattr(self, "cleaned_data", {}).keys()

    def forget_what_is_still_to_be_written(self) -> None:
        """Show a form that nobody has filled in yet without calling its empty texts wrong."""
        for name, schema in self.asked.items():
            if (
                schema.get("type") == "string"
                and not self.data.get(name)
                and name in self.errors
            ):
                del self.errors[name]
                self.unwritten.append(str(self.fields[name].label or name))

    @cached_property
    def wanted(self) -> Wanted:
        """What an answerable form asks for; raises Refused as the API would."""
        said = self.cleaned_data
        team = self._team(said["team"])
        assert team is not None  # noqa: S101 - it is among the choices
        spec = {name: said[name] for name in self.asked}
        now = timezone.now()
        return resolve(
            self.offering.key,
            spec,
            team=team,
            until=said["until"],
            starts=start_of(said.get("starts_at"), until=said["until"], now=now),
            reason=said.get("reason", ""),
            namespace=said.get("namespace", ""),
            setting=self.setting,
        )


def starts(
    link: Mapping[str, str],
    offering: Offering,
    setting: OfferingSetting,
    teams: Sequence[Team],
    *,
    usual: Mapping[str, str],
    now: datetime,
) -> tuple[dict[str, str], Lists]:
    """What a form begins with: what the link says, else what is usual, else a team that can have it, and a date.

    Of each list it is the first line that the team can have. Returns it with what the team can choose from.
    """
    team, lists = _first_team(
        link.get("team") or usual.get("team", ""), offering, setting, teams
    )
    until = quick_end("7" if offering.on_cluster else "14", now)
    found = {"team": team.slug if team else "", "until": until.strftime(INPUT)}
    for name, schema in fields_of(offering).items():
        possible = [line.value for line in lists.get(name, []) if not line.reason]
        first = STARTS.get(name) or str(schema.get("default", ""))
        if schema.get("type") == "integer":
            first = STARTS.get(name) or str(schema.get("minimum", 1))
        found[name] = first if first in possible or not possible else possible[0]
    # A link that leaves the project empty is for a new one, whose name is still to be written.
    empty = {
        name
        for name, schema in fields_of(offering).items()
        if is_suggested(schema) and name in link
    }
    named = {
        name: link[name]
        for name in [*found, "namespace", "reason", "starts_at"]
        if link.get(name) or name in empty
    }
    values = found | dict(usual) | named
    return values | _in_agreement(values, lists, fixed=named), lists


def _in_agreement(
    values: Mapping[str, str], lists: Lists, *, fixed: Collection[str]
) -> dict[str, str]:
    """The first flavor with a line that takes it, such as a notebook's profile, where these values disagree.

    What is `fixed` stays as it is; nothing changes where nothing agrees.
    """
    flavors = [line.value for line in lists.get("flavor", []) if not line.reason]
    pairs = (
        {"flavor": flavor, name: line.value}
        for flavor in sorted(flavors, key=lambda each: each != values.get("flavor"))
        for name, lines in lists.items()
        for line in sorted(lines, key=lambda each: each.value != values.get(name))
        if line.takes and not line.reason and line.takes == flavor.partition("/")[2]
    )
    return next(
        (
            pair
            for pair in pairs
            if all(values.get(name) == pair[name] for name in pair if name in fixed)
        ),
        {},
    )


def _first_team(
    named: str, offering: Offering, setting: OfferingSetting, teams: Sequence[Team]
) -> tuple[Team | None, Lists]:
    """The team of this short name, else the first that can have the offering; with what it can choose from."""
    found = next((team for team in teams if team.slug == named), None)
    if found is not None:
        return found, choices_of(offering, setting, team=found)
    lists: Lists = {}
    for team in teams:
        lists = choices_of(offering, setting, team=team)
        if all(any(not line.reason for line in lines) for lines in lists.values()):
            return team, lists
    return (teams[-1] if teams else None), lists
