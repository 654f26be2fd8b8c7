"""What a person writes about a service level."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from provisioning.models import Tenancy
from web.fields import StrictForm, set_choices
from workloads.service_levels.meters import Meter
from workloads.service_levels.models import ServiceLevel
from workloads.service_levels.tiers import Tier

TIERS = [
    (
        tier.value,
        f"{tier.objective.title}: {tier.objective.words} – {tier.objective.example}",
    )
    for tier in Tier
]
# What the way to the form may have filled in.
KNOWN = ("place", "service", "request")
METERS = [(meter.value, f"{meter.label}: {meter.line}") for meter in Meter]


class PromiseForm(StrictForm):
    """What a service promises, and what counts its requests."""

    tier = forms.ChoiceField(
        label="It promises", choices=TIERS, widget=forms.RadioSelect
    )
    meter = forms.ChoiceField(
        label="What counts its requests", choices=METERS, widget=forms.RadioSelect
    )

    def __init__(self, data: Any = None, *, level: ServiceLevel | None = None) -> None:
        known = {"tier": level.tier, "meter": level.meter} if level else None
        super().__init__(data, initial=known, label_suffix="")


class ServiceForm(PromiseForm):
    """A Service that is measured from now on; `place` is the id of its tenancy."""

    place = forms.ChoiceField(label="Where it runs")
    service = forms.CharField(
        label="Name of its Service",
        max_length=63,
        help_text="As kubectl get services lists it in the namespace.",
    )
    # The number of the request that it runs on, where somebody came from there.
    request = forms.IntegerField(min_value=1, required=False, widget=forms.HiddenInput)
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    field_order = ("place", "service", "tier", "meter")

    def __init__(
        self,
        data: Any = None,
        *,
        places: Iterable[Tenancy],
        known: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data)
        self.initial = {
            name: value for name, value in (known or {}).items() if name in KNOWN
        }
        named = [(one.pk, f"{one.cluster.title}, {one.namespace}") for one in places]
        set_choices(self, "place", named)
