"""The wizard's steps as forms: shapes only, every rule is asked of the action that will apply it."""

from typing import Any

from django import forms
from django.urls import reverse_lazy

from accounts.actions import check_cost_centre
from accounts.current_user import add_refusal
from accounts.models import User
from approvals.models import Request
from approvals.requests.actions import LEAST_REASON
from catalogue.gpus import GPUS
from connectors.errors import ConnectorError
from connectors.graph import Graph
from fleet.models import Cluster, Environment, Flavor
from onboarding.actions import check_group, check_name_free, slug_for
from onboarding.isolation_page import question_fields
from onboarding.recommending import KEYS
from web.fields import MOST_GPUS, StrictForm, WholeNumberField
from web.refusals import Refused

LONGEST_DAYS = 365
CHECK = reverse_lazy("onboard-check")


def live(field: str, **attrs: Any) -> dict[str, Any]:
    """Attributes by which a field is checked while it is typed into; without script the step's button checks it."""
    return {
        "hx-get": CHECK,
        "hx-trigger": "input changed delay:350ms, change",
        "hx-target": f"#said-{field}",
        "hx-sync": "this:replace",
        **attrs,
    }


class WhoForm(StrictForm):
    """The team: its name, its people and who pays."""

    also = StrictForm.also | {"search", "group_search"}

    name = forms.CharField(
        label="Team’s name",
        max_length=60,
        help_text="As people say it, such as “Vision”.",
        widget=forms.TextInput(
            attrs=live("name", autocomplete="off", spellcheck="false")
        ),
    )
    cost_centre = forms.CharField(
        label="Cost centre",
        max_length=20,
        help_text="Letters, digits and hyphens, such as CC-4711.",
        widget=forms.TextInput(
            attrs=live("cost_centre", autocomplete="off", spellcheck="false")
        ),
    )
    entra_group = forms.CharField(
        label="Group",
        max_length=36,
        error_messages={"required": "Choose the group whose members are the team."},
    )

    def __init__(self, *args: Any, user: User, graph: Graph, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user, self._graph, self.group_name = user, graph, ""

    def clean(self) -> dict[str, Any]:
        """Ask the actions and the directory; each refusal goes to its field."""
        values = super().clean()
        try:
            if "name" in values:
                check_name_free(values["name"])
        except Refused as refusal:
            add_refusal(self, refusal)
        try:
            if "cost_centre" in values:
                values["cost_centre"] = check_cost_centre(values["cost_centre"])
        except Refused as refusal:
            add_refusal(self, refusal)
        self._check_group(values.get("entra_group", ""))
        return values

    def _check_group(self, oid: str) -> None:
        if not oid:
            return
        try:
            self.group_name = check_group(oid, by=self._user, graph=self._graph).name
        except Refused as refusal:
            add_refusal(self, refusal)
        except ConnectorError as error:
            self.add_error(
                "entra_group",
                f"The directory cannot say whether it is yours: {error.message}",
            )


class WhereForm(StrictForm):
    """The first place: a project, what it is for, and a cluster."""

    project = forms.CharField(
        label="First project",
        max_length=60,
        initial="main",
        help_text="Costs are put under it; more can follow.",
        widget=forms.TextInput(
            attrs=live("project", autocomplete="off", spellcheck="false")
        ),
    )
    environment = forms.ChoiceField(
        label="What it is for", choices=Environment.choices, initial=Environment.DEV
    )
    cluster = forms.ModelChoiceField(
        label="Cluster",
        queryset=Cluster.objects.none(),
        to_field_name="name",
        error_messages={
            "required": "Choose a cluster.",
            "invalid_choice": "This cluster takes no teams now. Choose another.",
        },
    )

    def __init__(self, *args: Any, draft: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].widget.attrs["hx-get"] = f"{CHECK}?draft={draft}"
        self.fields["cluster"].queryset = Cluster.objects.open_to(None)  # type: ignore[attr-defined]
        self.fields.update(question_fields())

    @property
    def questions(self) -> list[forms.BoundField]:
        """The three questions about isolation."""
        return [self[key] for key in KEYS]

    def clean(self) -> dict[str, Any]:
        """Ask whether the project's name can be a name on a cluster."""
        values = super().clean()
        try:
            if "project" in values:
                slug_for(values["project"], field="project")
        except Refused as refusal:
            add_refusal(self, refusal)
        return values


class StartForm(StrictForm):
    """The GPUs to start with: none, one of the usual sizes, or exactly so many."""

    # A draft is read with this form too, and holds what the steps before it said.
    also = StrictForm.also | {
        "name",
        "cost_centre",
        "entra_group",
        "project",
        "environment",
        "cluster",
        *KEYS,
    }

    size = forms.CharField(label="Start with", max_length=40)
    flavor = forms.ModelChoiceField(
        label="Kind", queryset=Flavor.objects.none(), required=False, empty_label=None
    )
    gpus = WholeNumberField(
        label="GPUs", most=MOST_GPUS, of="GPUs", initial=1, required=False
    )
    days = WholeNumberField(
        label="For", most=LONGEST_DAYS, of="days", initial=7, required=False
    )
    purpose = forms.ChoiceField(
        label="To do",
        choices=Request.Purpose.choices,
        initial=Request.Purpose.TRAINING,
        required=False,
    )
    reason = forms.CharField(
        label="Why",
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Needed when a person decides: what is it for, why this much, and what if you get less? "
        f"At least {LEAST_REASON} characters. For example: “{GPUS.good_reason}”",
    )

    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        flavors = (
            Flavor.objects.offered_to(None)
            .filter(cluster=cluster)
            .select_related("cluster")
        )
        self.fields["flavor"].queryset = flavors  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Fill kind, number and days from the size that was chosen."""
        values = super().clean()
        size = str(values.get("size", ""))
        if size == "none":
            values |= {"flavor": None, "gpus": 0}
        elif size == "exact":
            for field in ("flavor", "gpus", "days"):
                if not values.get(field) and field not in self.errors:
                    self.add_error(
                        field, "Say how many." if field == "gpus" else "Choose one."
                    )
        elif size:
            self._fill_from(size)
        return values

    def _fill_from(self, size: str) -> None:
        """A usual size is written `flavor:gpus:days`."""
        parts = size.split(":")
        rows = self.fields["flavor"].queryset  # type: ignore[attr-defined]
        numbers = [
            int(part)
            for part in parts
            if part.isascii() and part.isdigit() and len(part) < 10
        ]
        flavor = (
            rows.filter(pk=numbers[0]).first()
            if len(numbers) == 3 == len(parts)
            else None
        )
        if flavor is None or not (numbers[1] >= 1 and 1 <= numbers[2] <= LONGEST_DAYS):
            self.add_error("size", "Choose one of these.")
            return
        self.cleaned_data |= {"flavor": flavor, "gpus": numbers[1], "days": numbers[2]}
        for field in ("flavor", "gpus", "days"):
            self.errors.pop(field, None)
