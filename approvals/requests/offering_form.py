"""The form of an offering, made from its typed spec, so that form, API and policy never disagree about a field."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from django import forms

from accounts.models import Team
from approvals.requests.asking import quick_until
from approvals.requests.forms import LONGEST_TEXT
from approvals.requests.namespaces import NamespaceField, choices_on, offer
from approvals.requests.wanted import Wanted, resolve
from catalogue.choices import Choice, choices_of, depends_on_team, fields_of, is_suggested
from catalogue.models import OfferingSetting
from catalogue.namespace import NamespaceSpec
from catalogue.offering import Offering
from provisioning.models import Tenancy
from web.fields import INPUT, MomentField, StrictForm, WholeNumberField

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
HELP: Mapping[str, str] = {
    "name": "Small letters, digits and hyphens, such as street-scenes.",
    "project": "One that the team has, or a new name: small letters, digits and hyphens, such as street-scenes.",
    "thousand_tokens_per_minute": "The ceiling; the price is for all of it, all the time.",
}
# A model to serve is written; a hosted one is chosen.
EXAMPLES: Mapping[str, str] = {"endpoint": "For example: mistral-7b-instruct."}
UNITS = {"gpus": "GPUs", "gib": "GiB", "gpus_per_replica": "GPUs"}
LONGEST_LIST_OF_RADIOS = 3
LONGEST_NAME = 40


class OfferingForm(StrictForm):
    """What to ask for. `token` makes a second sending harmless, `answered` is what the shown answer was about.

    With `follows_team`, where nothing is sent yet, what the team cannot have becomes the first that it can have.
    """

    also = StrictForm.also | {"check", "quick"}

    team = forms.ChoiceField(error_messages={"invalid_choice": "Choose one of your teams."})
    namespace = NamespaceField()
    until = MomentField(label="Until (UTC)")
    reason = forms.CharField(
        label="Why",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="A person decides this one. What is it for, and why this much?",
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    answered = forms.CharField(widget=forms.HiddenInput, max_length=300, required=False)

    def __init__(
        self,
        data: Any,
        *,
        offering: Offering,
        setting: OfferingSetting,
        teams: Sequence[Team],
        follows_team: bool = False,
    ) -> None:
        super().__init__(data, label_suffix="")
        self.offering, self.teams = offering, teams
        team = self.fields["team"]
        assert isinstance(team, forms.ChoiceField)  # noqa: S101 - told to the type checker
        team.choices = [(each.slug, each.name) for each in teams]
        self.asked = fields_of(offering)
        self.suggested: dict[str, list[str]] = {}
        lists = choices_of(offering, setting, team=self._team(str(data.get("team", ""))))
        for name, schema in self.asked.items():
            self.fields[name] = _field(offering, name, schema, lists.get(name))
            if is_suggested(schema):
                self.suggested[f"{name}-list"] = [line.value for line in lists.get(name, [])]
            if depends_on_team(schema):
                self._fit(name, lists[name], follows_team=follows_team)
        self._offer_namespaces()

    def _fit(self, name: str, lines: Sequence[Choice], *, follows_team: bool) -> None:
        """Show nothing as chosen that was not said: take the first that is possible, or ask to choose."""
        possible = [(line.value, line.label) for line in lines if not line.reason]
        field, said = self.fields[name], self.data
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - told to the type checker
        if not possible or said.get(name) in dict(possible):
            return
        if follows_team:
            self.data = {key: said[key] for key in said} | {name: possible[0][0]}
        else:
            field.choices = [("", "Choose one"), *possible]

    def _offer_namespaces(self) -> None:
        """Ask for the namespace where the team has several on the cluster that is named."""
        team, tenancies = self._team(str(self.data.get("team", ""))), Tenancy.objects.none()
        named = str(self.data.get("flavor") or self.data.get("cluster") or "").partition("/")[0]
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
    def rows(self) -> list[list[str]]:
        """The fields of the spec in lines: numbers beside each other, anything else in a line of its own."""
        lines: list[list[str]] = []
        for name, schema in self.asked.items():
            number = schema.get("type") == "integer"
            if number and lines and self.asked[lines[-1][-1]].get("type") == "integer":
                lines[-1].append(name)
            else:
                lines.append([name])
        return lines

    @property
    def is_answerable(self) -> bool:
        """Whether enough of it is clean to judge it; the reason may still be missing."""
        self.is_valid()
        return {"team", "until", *self.asked} <= getattr(self, "cleaned_data", {}).keys()

    def forget_what_is_still_to_be_written(self) -> None:
        """Show a form that nobody has filled in yet without calling its empty texts wrong."""
        for name, schema in self.asked.items():
            if schema.get("type") == "string" and not self.data.get(name):
                self.errors.pop(name, None)

    @cached_property
    def wanted(self) -> Wanted:
        """What an answerable form asks for; raises Refused as the API would."""
        said = self.cleaned_data
        team = self._team(said["team"])
        assert team is not None  # noqa: S101 - it is among the choices
        spec = {name: said[name] for name in self.asked}
        return resolve(
            self.offering.key,
            spec,
            team=team,
            until=said["until"],
            reason=said.get("reason", ""),
            namespace=said.get("namespace", ""),
        )


def starts(
    form: Mapping[str, str],
    offering: Offering,
    teams: Sequence[Team],
    setting: OfferingSetting,
    *,
    now: datetime,
) -> dict[str, str]:
    """What a form begins with: what the link says, else a team that can have it, the first of each list, and a date."""
    slugs = [team.slug for team in teams]
    team = next((team for team in teams if team.slug == form.get("team")), None)
    lists: Mapping[str, list[Choice]] = {}
    for each in [team] if team else teams:
        lists = choices_of(offering, setting, team=each)
        team = each
        if all(any(not line.reason for line in lines) for lines in lists.values()):
            break
    until = quick_until("7" if offering.on_cluster else "14", now)
    found = {"team": team.slug if team else (slugs[0] if slugs else ""), "until": until.strftime(INPUT)}
    for name, schema in fields_of(offering).items():
        possible = [line.value for line in lists.get(name, []) if not line.reason]
        usual = STARTS.get(name) or str(schema.get("default", ""))
        if schema.get("type") == "integer":
            usual = STARTS.get(name) or str(schema.get("minimum", 1))
        found[name] = usual if usual in possible or not possible else possible[0]
    # A link that leaves the project empty is for a new one, whose name is still to be written.
    empty = {name for name, schema in fields_of(offering).items() if is_suggested(schema) and name in form}
    return found | {name: form[name] for name in [*found, "reason"] if form.get(name) or name in empty}


def _field(
    offering: Offering, name: str, schema: Mapping[str, Any], lines: list[Choice] | None
) -> forms.Field:
    label = str(schema.get("title", name))
    help_text = HELP.get(name, "")
    if is_suggested(schema):
        return forms.CharField(
            label=label,
            max_length=LONGEST_NAME,
            help_text=help_text,
            widget=forms.TextInput(attrs={"list": f"{name}-list", "autocomplete": "off"}),
            error_messages={"required": "Still to be written."},
        )
    if lines is not None:
        possible = [(line.value, line.label) for line in lines if not line.reason]
        said = "Choose one of the list." if possible else "There is nothing to choose from for this team."
        widget = (
            forms.RadioSelect
            if "enum" in schema and len(possible) <= LONGEST_LIST_OF_RADIOS
            else forms.Select
        )
        return forms.ChoiceField(
            label=label,
            choices=possible,
            widget=widget,
            help_text="" if possible else nothing_words(offering, name),
            error_messages={"invalid_choice": said, "required": said},
        )
    if schema.get("type") == "integer":
        return WholeNumberField(
            label=label,
            most=int(schema.get("maximum", 9_999)),
            of=UNITS.get(name, "units"),
            help_text=help_text,
        )
    if name == "model":
        help_text = EXAMPLES.get(offering.key, help_text)
    return forms.CharField(
        label=label,
        max_length=int(schema.get("maxLength", 80)),
        help_text=help_text,
        error_messages={"required": "Still to be written."},
    )


def nothing_words(offering: Offering, name: str) -> str:
    """Why a list is empty, and what to do."""
    if name == "flavor":
        return "The team is on no cluster with GPUs on offer. Ask for a namespace on one first."
    if name == "cluster":
        on = "on no cluster yet" if offering.key == "volume" else "on every cluster already"
        return f"The team is {on}."
    return "Nothing of this is offered now."
