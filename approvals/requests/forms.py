"""The forms of asking and deciding; what they may say is decided by the actions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from accounts.models import Team, User
from approvals.decisions.bulk import Chosen
from approvals.models import Decision, Request
from approvals.requests.actions import MOST_GPUS
from approvals.requests.namespaces import NamespaceField, choices_on, offer
from approvals.requests.presenting import with_cost
from approvals.requests.wanted import Wanted
from catalogue.offerings import OFFERINGS
from fleet.models import Flavor
from provisioning.desired.isolation import is_for
from provisioning.models import Tenancy
from ui.amounts import usd
from web.fields import MomentField, StrictForm, WholeNumberField

LONGEST_TEXT = 2000
SEEN = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


def _is_at(flavor: Flavor, tenancy: Tenancy) -> bool:
    return flavor.cluster_id == tenancy.cluster_id and is_for(flavor, tenancy)


@dataclass(frozen=True)
class Offers:
    """What a person can ask for: their teams' places, and the kinds of GPU that are offered there."""

    tenancies: Sequence[Tenancy]
    flavors: Sequence[Flavor]

    @classmethod
    def of(cls, user: User) -> "Offers":
        """Read in two queries."""
        places = with_cost(Tenancy.objects.here().of_member(user)).filter(cluster__enabled=True)
        tenancies = list(places.select_related("team", "cluster", "project"))
        clusters = {tenancy.cluster_id for tenancy in tenancies}
        flavors = Flavor.objects.offered().filter(cluster__in=clusters).select_related("cluster")
        rows = flavors.order_by("cluster__name", "price_per_gpu_hour", "name")
        return cls(tenancies, [flavor for flavor in rows if any(_is_at(flavor, t) for t in tenancies)])

    @property
    def teams(self) -> list[Team]:
        """The teams, each once, by name."""
        return list({tenancy.team_id: tenancy.team for tenancy in self.tenancies}.values())

    def tenancy(self, team: str, flavor: Flavor, namespace: str = "") -> Tenancy | None:
        """The team's namespace where a kind of GPU is, the first where none is named; None where it has none."""
        there = self._of_team(team, flavor)
        return next((tenancy for tenancy in there if namespace in ("", tenancy.namespace)), None)

    def namespaces(self, team: str, key: str) -> list[tuple[str, str]]:
        """The team's namespaces where a kind of GPU is, by its key; empty where there is nothing to choose."""
        flavor = self.flavor(key)
        return choices_on(self._of_team(team, flavor), flavor.cluster.name) if flavor else []

    def _of_team(self, team: str, flavor: Flavor) -> list[Tenancy]:
        return [
            tenancy for tenancy in self.tenancies if tenancy.team.slug == team and _is_at(flavor, tenancy)
        ]

    def flavor(self, key: str) -> Flavor | None:
        """The kind of GPU with this key; None for one that is not offered to this person."""
        return next((flavor for flavor in self.flavors if flavor.key == key), None)

    def choices(self, team: str) -> list[tuple[str, Any]]:
        """The kinds of GPU where a team is, by cluster, each with its price and what is free."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for flavor in self.flavors:
            if self.tenancy(team, flavor) is not None:
                groups.setdefault(flavor.cluster.name, []).append((flavor.key, kind_words(flavor)))
        return list(groups.items())


def kind_words(flavor: Flavor) -> str:
    """ "A100 80 GB · $3.67 per GPU-hour · 6 free now"."""
    price = usd(flavor.price_per_gpu_hour)
    return f"{flavor.words} · {price} per GPU-hour · {flavor.free_words}"


class AskForm(StrictForm):
    """What to ask for. `token` makes a second sending harmless, `answered` is what the shown answer was about."""

    also = StrictForm.also | {"check", "quick"}

    team = forms.ChoiceField(error_messages={"invalid_choice": "Choose one of your teams."})
    flavor = forms.ChoiceField(
        label="Kind of GPU",
        error_messages={"invalid_choice": "Choose a kind of GPU that is offered where the team is."},
    )
    namespace = NamespaceField()
    gpus = WholeNumberField(label="GPUs", most=MOST_GPUS, of="GPUs")
    until = MomentField(label="Until (UTC)")
    purpose = forms.ChoiceField(
        label="For",
        choices=Request.Purpose.choices,
        widget=forms.RadioSelect,
        initial=Request.Purpose.TRAINING,
    )
    reason = forms.CharField(
        label="Why",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="A person decides this one. What is it for, and why this many?",
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    answered = forms.CharField(widget=forms.HiddenInput, max_length=300, required=False)

    def __init__(self, data: Any = None, *, offers: Offers, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        self.offers = offers
        team = str((data or initial or {}).get("team", ""))
        self.choose("team", [(team.slug, team.name) for team in offers.teams])
        self.choose("flavor", [("", "Choose a kind of GPU"), *offers.choices(team)])
        offer(self, offers.namespaces(team, str((data or initial or {}).get("flavor", ""))))

    def choose(self, name: str, choices: list[tuple[str, Any]]) -> None:
        """Set what a field offers."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - told to the type checker
        field.choices = choices

    @property
    def is_answerable(self) -> bool:
        """Whether enough of it is clean to judge it; the reason may still be missing."""
        self.is_valid()
        return {"team", "flavor", "gpus", "until", "purpose"} <= getattr(self, "cleaned_data", {}).keys()

    @property
    def wanted(self) -> Wanted:
        """What an answerable form asks for."""
        said = self.cleaned_data
        flavor = self.offers.flavor(said["flavor"])
        named = said.get("namespace", "")
        tenancy = self.offers.tenancy(said["team"], flavor, named) if flavor else None
        assert flavor is not None and tenancy is not None  # noqa: S101, PT018 - both are among the choices
        return Wanted.of_gpus(
            tenancy=tenancy,
            flavor=flavor,
            gpus=said["gpus"],
            until=said["until"],
            purpose=said["purpose"],
            reason=said.get("reason", ""),
            namespace=named,
        )


class TextForm(StrictForm):
    """What is written to the other side: an answer, a comment."""

    also = StrictForm.also | {"do"}

    text = forms.CharField(
        label="Your answer",
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Write something first."},
    )


class DecisionForm(StrictForm):
    """A verdict on the version of a request that the page showed."""

    VERDICTS = [("approve", "Approve"), ("less", "Approve less"), ("ask", "Ask"), ("reject", "Reject")]

    do = forms.ChoiceField(choices=VERDICTS, widget=forms.HiddenInput)
    version = forms.IntegerField(min_value=1, max_value=2_000_000_000, widget=forms.HiddenInput)
    count = WholeNumberField(label="How many", most=65_536, of="units", required=False)
    reason_code = forms.ChoiceField(label="Because", choices=Decision.Because.choices, required=False)
    reason = forms.CharField(label="Reason", required=False, max_length=LONGEST_TEXT)

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for "less" without a number, which must never be taken for all of it."""
        said = super().clean()
        if said.get("do") == "less" and said.get("count") is None and "count" not in self.errors:
            self.add_error("count", "Say how many.")
        return said


class RequestFilter(forms.Form):
    """What the list of requests is narrowed to."""

    whose = forms.ChoiceField(label="Whose", required=False, choices=[("", "Everybody’s"), ("mine", "Mine")])
    team = forms.ChoiceField(label="Team", required=False)
    state = forms.ChoiceField(
        label="State",
        required=False,
        choices=[
            ("", "Any state"),
            ("waiting", "Waiting"),
            ("held", "Held now"),
            ("ended", "Ended"),
            ("rejected", "Rejected"),
            ("withdrawn", "Withdrawn"),
        ],
    )

    def __init__(self, data: Any, *, teams: list[tuple[str, str]]) -> None:
        super().__init__(data, label_suffix="")
        field = self.fields["team"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - told to the type checker
        field.choices = [("", "All teams"), *teams]


class QueueFilter(RequestFilter):
    """What the queue of an approver is narrowed to."""

    whose = None  # type: ignore[assignment]
    state = None  # type: ignore[assignment]
    offering = forms.ChoiceField(
        label="For",
        required=False,
        choices=[("", "Any offering"), *((o.key, o.name) for o in OFFERINGS.values())],
    )
    size = forms.ChoiceField(
        label="Size",
        required=False,
        choices=[("", "Any size"), ("small", "Below 8 GPUs"), ("large", "8 GPUs and more")],
    )
    age = forms.ChoiceField(
        label="Age",
        required=False,
        choices=[("", "Any age"), ("day", "Older than a day"), ("week", "Older than a week")],
    )


class ManyForm(StrictForm):
    """One verdict on several requests, each in the version that the page showed: `seen` is "17:3" for each."""

    also = StrictForm.also | {"seen"}

    do = forms.ChoiceField(choices=[("approve", "Approve"), ("reject", "Reject")], widget=forms.HiddenInput)
    reason_code = forms.ChoiceField(label="Because", choices=Decision.Because.choices, required=False)
    reason = forms.CharField(label="Note for all of them", required=False, max_length=LONGEST_TEXT)

    def pairs(self) -> list[tuple[int, int]]:
        """Each request with the version that was seen."""
        given = self.data.getlist("seen") if hasattr(self.data, "getlist") else []
        found = [SEEN.fullmatch(each) for each in given]
        return [(int(each[1]), int(each[2])) for each in found if each]

    def numbers(self) -> list[int]:
        """The requests."""
        return [pk for pk, _ in self.pairs()]

    def chosen(self) -> list[Chosen]:
        """The verdicts of a clean form."""
        said = self.cleaned_data
        return [
            Chosen(pk, version, said["do"], said["reason"], said["reason_code"] or "other")
            for pk, version in self.pairs()
        ]
