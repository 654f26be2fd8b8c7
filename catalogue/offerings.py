"""The service catalogue: what may be asked for, at which gate, and what follows. Pure; platform leads change the rest.

The eight offerings of the platform's charter and capacity reservations, with their default gates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from allocations.schedule import NO_TERMS, Terms, WhenOver
from catalogue import spec
from ui.amounts import gpus


class Gate(StrEnum):
    """Whether the policy may approve an offering at once, or people always decide."""

    SELF_SERVICE = "self_service"
    APPROVAL = "approval"

    @property
    def words(self) -> str:
        """As pages say it."""
        return {"self_service": "the policy, when every rule holds", "approval": "always people"}[self.value]


@dataclass(frozen=True, kw_only=True)
class Offering:
    """Something that may be asked for. `reversible_minutes` is how soon it is undone, None when it is not.

    `end` is what happens to its GPUs at the end, unless platform leads say otherwise.
    """

    key: str
    name: str
    line: str
    spec: type[spec.Spec]
    unit: str
    gate: Gate
    reversible_minutes: int | None
    by_person: bool = False
    after: tuple[str, ...] = ()
    priced: str = ""  # what the prices are of: "GiB and month"
    prices: Mapping[str, Decimal] = field(default_factory=dict)  # USD to start with
    end: Terms = NO_TERMS

    @property
    def on_cluster(self) -> bool:
        """Whether it takes GPUs of a cluster's pool."""
        return "flavor" in self.spec.model_fields

    def units(self, many: int) -> str:
        """What so many are of: "GPUs", "GiB", "replica"."""
        return self.unit if many == 1 or self.unit == "GiB" or "tokens" in self.unit else f"{self.unit}s"

    @property
    def is_taken_down(self) -> bool:
        """Whether a person takes it down when its time is over."""
        return self.by_person or self.spec is spec.NamespaceSpec

    @property
    def undone(self) -> str:
        """How soon it is undone, as pages say it."""
        if self.reversible_minutes is None:
            return "Cannot be undone: it is paid until its end."
        minutes = self.reversible_minutes
        return f"Can be undone within {minutes} minute{'' if minutes == 1 else 's'}."


# Azure's list prices of November 2026 in USD per hour; platform leads set their own on the catalogue page.
VM_PRICES = {
    "Standard_NC4as_T4_v3": Decimal("0.526"),
    "Standard_NC24ads_A100_v4": Decimal("3.673"),
    "Standard_NC96ads_A100_v4": Decimal("14.692"),
    "Standard_NC40ads_H100_v5": Decimal("6.98"),
    "Standard_ND96amsr_A100_v4": Decimal("32.77"),
    "Standard_ND96isr_H100_v5": Decimal("98.32"),
}
# On-demand capacity reservations take neither the ND series nor NCads H100 v5 (Azure's documentation, February 2026).
# What else a subscription may reserve, platform leads offer by giving it a price on the catalogue page.
RESERVATION_PRICES = {
    name: price
    for name, price in VM_PRICES.items()
    if not name.startswith("Standard_ND") and not name.endswith("_H100_v5")
}
VM_GPUS = {
    "Standard_NC4as_T4_v3": 1,
    "Standard_NC24ads_A100_v4": 1,
    "Standard_NC96ads_A100_v4": 4,
    "Standard_NC40ads_H100_v5": 1,
    "Standard_ND96amsr_A100_v4": 8,
    "Standard_ND96isr_H100_v5": 8,
}
# USD per million tokens, an upper estimate: all of the ceiling, all of it answers.
TOKEN_PRICES = {
    "gpt-4o": Decimal("10.00"),
    "gpt-4o-mini": Decimal("0.60"),
    "text-embedding-3-large": Decimal("0.13"),
}
# USD per GiB and month of premium storage.
VOLUME_PRICES = {"ReadWriteOnce": Decimal("0.12"), "ReadWriteMany": Decimal("0.16")}
HOURS_A_MONTH = 730
TINY = Decimal("0.00000001")
REGIONS = (
    "eastus",
    "eastus2",
    "southcentralus",
    "westus3",
    "westeurope",
    "northeurope",
    "swedencentral",
    "uksouth",
)

GRANTED = "The quota and the queue on the cluster go up within seconds."
KEPT = "Its GPUs are kept for it at once, without charge."
BACK = "On its end date it goes back by itself."
PERSON = "A platform lead takes the task, makes it and marks it done here. It costs nothing before that."
DOWN = "On its end date a platform lead asks you, then takes it down."

# Nobody is charged for grace and nobody else has the GPUs meanwhile, so there is none where a click renews, and hours
# where people decide the renewal or others depend on what runs. A batch job may come to its next checkpoint; what a
# person sits at has had its reminders; an endpoint never ends by itself.
A_DAY_MORE = Terms(when_over=WhenOver.DRAIN, drain_hours=24)
AT_ONCE = Terms(when_over=WhenOver.STOP)
TRAINING_ENDS = Terms(grace_hours=1, when_over=WhenOver.DRAIN, drain_hours=48)
ENDPOINT_ENDS = Terms(grace_hours=4, when_over=WhenOver.DRAIN, drain_hours=24)

OFFERINGS: Mapping[str, Offering] = {
    offering.key: offering
    for offering in (
        Offering(
            key="gpus",
            name="GPUs",
            line="A few GPUs for a while, for anything.",
            spec=spec.GpuSpec,
            unit="GPU",
            gate=Gate.SELF_SERVICE,
            reversible_minutes=1,
            after=(GRANTED, BACK),
            end=A_DAY_MORE,
        ),
        Offering(
            key="notebook",
            name="Notebook",
            line="A notebook server with its own GPUs.",
            spec=spec.NotebookSpec,
            unit="GPU",
            gate=Gate.SELF_SERVICE,
            reversible_minutes=5,
            by_person=True,
            after=(KEPT, PERSON, BACK),
            end=AT_ONCE,
        ),
        Offering(
            key="volume",
            name="Dataset volume",
            line="Storage for datasets, beside the team’s namespace.",
            spec=spec.VolumeSpec,
            unit="GiB",
            gate=Gate.SELF_SERVICE,
            reversible_minutes=10,
            by_person=True,
            after=(PERSON, DOWN),
            priced="GiB and month",
            prices=VOLUME_PRICES,
        ),
        Offering(
            key="namespace",
            name="Namespace",
            line="A place for a project’s development, test or production.",
            spec=spec.NamespaceSpec,
            unit="namespace",
            gate=Gate.SELF_SERVICE,
            reversible_minutes=5,
            after=("Namespace, quota, network policies and queue are made within seconds.", DOWN),
        ),
        Offering(
            key="training",
            name="Large training",
            line="Eight GPUs or more for one training.",
            spec=spec.TrainingSpec,
            unit="GPU",
            gate=Gate.APPROVAL,
            reversible_minutes=1,
            after=(GRANTED, BACK),
            end=TRAINING_ENDS,
        ),
        Offering(
            key="endpoint",
            name="Production inference endpoint",
            line="A model that answers production requests.",
            spec=spec.EndpointSpec,
            unit="replica",
            gate=Gate.APPROVAL,
            reversible_minutes=60,
            by_person=True,
            after=(KEPT, PERSON, BACK),
            end=ENDPOINT_ENDS,
        ),
        Offering(
            key="openai",
            name="Azure OpenAI endpoint",
            line="A deployment of a hosted model for the team.",
            spec=spec.OpenAiSpec,
            unit="thousand tokens a minute",
            gate=Gate.APPROVAL,
            reversible_minutes=60,
            by_person=True,
            after=(PERSON, DOWN),
            priced="million tokens",
            prices=TOKEN_PRICES,
        ),
        Offering(
            key="reservation",
            name="Capacity reservation",
            line="Azure capacity that is kept for you, and paid.",
            spec=spec.ReservationSpec,
            unit="instance",
            gate=Gate.APPROVAL,
            reversible_minutes=60,
            by_person=True,
            after=(PERSON, "It costs the same whether it is used or not, until you let go of it.", DOWN),
            priced="instance and hour",
            prices=RESERVATION_PRICES,
        ),
        Offering(
            key="cluster",
            name="New cluster",
            line="A cluster of its own, for what the present ones cannot take.",
            spec=spec.ClusterSpec,
            unit="node",
            gate=Gate.APPROVAL,
            reversible_minutes=None,
            by_person=True,
            after=(PERSON, "Then it appears under Clusters.", DOWN),
            priced="node and hour",
            prices=VM_PRICES,
        ),
    )
}


CHOICES = [(offering.key, offering.name) for offering in OFFERINGS.values()]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of an offering a spec is: units, GPUs and USD an hour of each, and how that comes about."""

    count: int
    gpus_each: int
    usd_per_hour_each: Decimal
    formula: str


def size_of(
    offering: Offering, said: spec.Spec, *, price: Decimal | None, prices: Mapping[str, Decimal]
) -> Size:
    """The size of a clean spec; `price` is the flavor's in USD per GPU-hour, `prices` what the offering charges.

    Raises KeyError naming what has no price.
    """
    count, each, gpus_each, how = said.count, Decimal(0), 0, "costs nothing"
    match said:
        case spec.GpuSpec() | spec.NotebookSpec():
            each, gpus_each = price or Decimal(0), 1
            how = f"{count} × ${each:,.2f} per GPU-hour"
        case spec.EndpointSpec():
            gpus_each = said.gpus_per_replica
            each = gpus_each * (price or Decimal(0))
            how = f"{count} × {gpus(gpus_each)} × ${price:,.2f} per GPU-hour"
        case spec.VolumeSpec():
            each = (prices[said.access] / HOURS_A_MONTH).quantize(TINY)
            how = f"{count:,} GiB × ${prices[said.access]:,.2f} per GiB and month of {HOURS_A_MONTH} hours"
        case spec.OpenAiSpec():
            each = prices[said.model] * 60 / 1000
            how = f"at most {count:,}k tokens a minute × ${prices[said.model]:,.2f} per million tokens, all used"
        case spec.ReservationSpec() | spec.ClusterSpec():
            each, gpus_each = prices[said.vm_size], VM_GPUS.get(said.vm_size, 0)
            how = f"{count} × {said.vm_size} × ${each:,.2f} an hour, used or not"
    return Size(count=count, gpus_each=gpus_each, usd_per_hour_each=each, formula=how)


def title(
    offering: Offering, said: spec.Spec, *, product: str = "", count: int | None = None, of: int = 0
) -> str:
    """What is asked for in a few words: "2 × A100", "500 GiB volume corpus". `product` names the flavor's GPU.

    With `of` it is some of what was asked: "2 of 3 × A100".
    """
    units = said.count if count is None else count
    number = f"{units:,} of {of:,}" if of > units else f"{units:,}"
    match said:
        case spec.GpuSpec():
            return f"{number} × {product}"
        case spec.NotebookSpec():
            return f"Notebook with {number} × {product}"
        case spec.EndpointSpec():
            return f"Endpoint of {number} × {said.gpus_per_replica} {product} for {said.model}"
        case spec.VolumeSpec():
            return f"{number} GiB volume {said.name}"
        case spec.NamespaceSpec():
            words = {"dev": "Development", "test": "Test", "production": "Production"}[said.environment]
            return f"{words} namespace for {said.project}"
        case spec.OpenAiSpec():
            return f"{said.model} with {number}k tokens a minute"
        case spec.ReservationSpec():
            return f"{number} × {said.vm_size} reserved"
        case spec.ClusterSpec():
            return f"Cluster of {number} × {said.vm_size}"
    return offering.name


def in_sentence(title_: str) -> str:
    """A title as it stands within a sentence: "2 × A100", "a notebook with 1 × T4"."""
    if not title_[:1].isupper():
        return title_
    return f"{'an' if title_[0] in 'AEIOU' else 'a'} {title_[0].lower()}{title_[1:]}"
