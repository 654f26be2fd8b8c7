"""A policy as a form: every number with its unit and the value in force beside it, exceptions and routes as YAML."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypedDict

import yaml
from django import forms

from approvals.policy_desk.parsing import ENVIRONMENTS
from approvals.policy_desk.simulator import LONGEST_DAYS
from policy import words
from policy.document import Policy, Route, StepPlan, Thresholds, Where, to_json
from policy.models import PolicyDraft
from web.documents import placed
from web.fields import MomentField, StrictForm, YamlField, YamlFileForm

WHOLE = re.compile(r"[0-9]{1,10}", re.ASCII)
AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{1,4})?", re.ASCII)
LONGEST_WHY = 200
CHOICES = (
    "automatic_environments",
    "automatic_beyond_soft_budget",
    "automatic_when_unmeasured",
)
EMPTY_IS_NO_LIMIT = (
    "automatic_gpu_hours",
    "window_gpus_person",
    "window_usd_team",
    "window_usd_person",
)
USUAL_DAYS = 30


class LimitField(forms.Field):
    """A number of a policy in plain digits; nothing is no limit, where that is possible."""

    def __init__(self, *, pattern: re.Pattern[str] = WHOLE, **options: Any) -> None:
        super().__init__(
            widget=forms.TextInput(attrs={"inputmode": "decimal", "size": 10}),
            **options,
        )
        self.error_messages["required"] = "Write a number."
        self.pattern = pattern

    def to_python(self, value: Any) -> str | None:
        """The digits; None for nothing. Raises ValidationError."""
        text = str(value if value is not None else "").strip().replace(",", "")
        if text in self.empty_values:
            return None
        if not self.pattern.fullmatch(text):
            raise forms.ValidationError("Write a number, like 16.", code="number")
        return text


class Number(TypedDict):
    """A field of the thresholds with its unit and what is in force now."""

    bound: forms.BoundField
    unit: str
    help: str


class PolicyForm(StrictForm):
    """A draft of the policy. `version` is the draft as the page showed it."""

    version = forms.IntegerField(
        min_value=1, max_value=2_000_000_000, widget=forms.HiddenInput
    )
    reason = forms.CharField(
        label="Why",
        required=False,
        max_length=LONGEST_WHY,
        help_text="One sentence for everybody who reads the history. Needed before it comes into force.",
    )
    lapse_days = LimitField(label=words.LAPSE.words)
    overrides = YamlField(
        label="Exceptions",
        help_text="Where numbers differ for some offerings, environments, flavors or tiers; later ones win. "
        "For example: - {where: {tiers: [trusted]}, set: {automatic_gpus: 4}}",
    )
    routes = YamlField(
        label="Who decides",
        help_text="The first route that takes an ask decides it; the last one must take every ask.",
    )

    def __init__(self, data: Any = None, *, draft: PolicyDraft) -> None:
        policy = draft.policy
        super().__init__(
            data,
            label_suffix="",
            initial=_initial(policy) | {"version": draft.version, "reason": draft.why},
        )
        for each in fields(Thresholds):
            self.fields[each.name] = _field(each.name)

    def numbers(self, in_force: Policy) -> list[Number]:
        """The fields of the thresholds, each with its unit and what is in force now."""
        shown: list[Number] = []
        for name, label in words.THRESHOLDS.items():
            now = words.threshold(name, getattr(in_force.thresholds, name))
            said = f"In force: {now}. {label.help}".strip()
            shown.append({"bound": self[name], "unit": label.unit, "help": said})
        return shown

    def said(self) -> dict[str, Any]:
        """The document that a clean form says."""
        clean = self.cleaned_data
        thresholds = {name: clean[name] for name in words.THRESHOLDS}
        return {
            "thresholds": thresholds,
            "overrides": clean["overrides"],
            "routes": clean["routes"],
            "lapse_days": clean["lapse_days"],
        }

    def add_problems(self, problems: tuple[tuple[str, str], ...]) -> None:
        """Put each place that is wrong at its field."""
        for place, what in problems:
            part, _, rest = place.partition(".")
            name = rest.partition(".")[0] if part == "thresholds" else part
            deeper = place if part in ("overrides", "routes") else ""
            self.add_error(name if name in self.fields else None, placed(deeper, what))


class ImportForm(YamlFileForm):
    """A policy as YAML."""

    yaml = YamlField(label="The policy as YAML", rows=18)
    reason = forms.CharField(label="Why", required=False, max_length=LONGEST_WHY)


class SimulationForm(forms.Form):
    """How many days to replay."""

    DAYS = (7, 30, 90, LONGEST_DAYS)

    days = forms.TypedChoiceField(
        label="Requests of the last",
        coerce=int,
        choices=[(days, f"{days} days") for days in DAYS],
        initial=USUAL_DAYS,
    )


class ActivationForm(StrictForm):
    """Putting a draft in force, from now or from a later moment."""

    version = forms.IntegerField(
        min_value=1, max_value=2_000_000_000, widget=forms.HiddenInput
    )
    active_from = MomentField(
        label="From (UTC)", required=False, help_text="Empty for now."
    )
    everything_automatic = forms.BooleanField(
        label="This is meant: put it in force all the same", required=False
    )


class CancellationForm(StrictForm):
    """Why a policy that is to come does not."""

    reason = forms.CharField(
        label="Why it is not to come",
        max_length=LONGEST_WHY,
        help_text="Everybody who was told that it comes reads this.",
    )


class VersionForm(StrictForm):
    """The version of a draft that the page showed."""

    version = forms.IntegerField(
        min_value=1, max_value=2_000_000_000, widget=forms.HiddenInput
    )


class NewDraftForm(StrictForm):
    """What a new draft starts from: a version in force or before, or somebody's draft."""

    base = forms.IntegerField(min_value=1, max_value=2_000_000_000, required=False)
    copy = forms.IntegerField(min_value=1, max_value=2_000_000_000, required=False)


def shortened(value: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that say something else than what counts without them."""
    return {
        key: inner
        for key, inner in value.items()
        if key not in usual or inner != usual[key]
    }


def _field(name: str) -> forms.Field:
    label = words.THRESHOLDS[name].words
    if name == "automatic_environments":
        choices = [(each, each) for each in ENVIRONMENTS]
        widget = forms.CheckboxSelectMultiple
        return forms.MultipleChoiceField(
            label=label, required=False, choices=choices, widget=widget
        )
    if name in CHOICES:
        return forms.BooleanField(label=label, required=False)
    pattern = AMOUNT if words.THRESHOLDS[name].unit == "USD" else WHOLE
    return LimitField(
        label=label, pattern=pattern, required=name not in EMPTY_IS_NO_LIMIT
    )


def _initial(policy: Policy) -> dict[str, Any]:
    document = to_json(policy)
    where, step = to_json(Policy())["routes"][0]["where"], _usual_step()
    overrides = [
        {**each, "where": shortened(each["where"], where)}
        for each in document["overrides"]
    ]
    routes = [_short_route(each, where, step) for each in document["routes"]]
    thresholds: dict[str, Any] = document["thresholds"]
    return thresholds | {
        "lapse_days": document["lapse_days"],
        "overrides": _yaml(overrides),
        "routes": _yaml(routes),
    }


def _short_route(
    route: dict[str, Any], where: Mapping[str, Any], step: Mapping[str, Any]
) -> dict[str, Any]:
    short: dict[str, Any] = shortened(
        route, {"gpus_from": None, "usd_from": None, "where": where}
    )
    if "where" in short:
        short["where"] = shortened(short["where"], where)
    return short | {"steps": [shortened(each, step) for each in route["steps"]]}


def _usual_step() -> dict[str, Any]:
    route = Route(name="", where=Where(), steps=(StepPlan(by=""),))
    steps: list[dict[str, Any]] = to_json(Policy(routes=(route,)))["routes"][0]["steps"]
    return {key: value for key, value in steps[0].items() if key != "by"}


def _yaml(value: list[Any]) -> str:
    return (
        yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
        if value
        else ""
    )
