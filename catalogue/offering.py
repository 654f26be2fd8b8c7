"""What an offering is: something that may be asked for, at which gate, at which price, and who makes it. Pure.

Each offering has a module of its own beside this one, with its spec: what is asked for, how much that is, and the words
for it. `catalogue.offerings` lists them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, Field

from allocations.schedule import NO_TERMS, Provisioner, Terms

NAME = r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$"
KIND = r"^[a-z0-9-]{1,40}/[a-z0-9-]{1,40}$"
REGION = r"^[a-z]{2,}[a-z0-9]{0,30}$"

Flavor = Annotated[
    str, Field(title="Kind of GPU", pattern=KIND, json_schema_extra={"list": "flavors"})
]
ClusterName = Annotated[
    str, Field(title="Cluster", pattern=NAME, json_schema_extra={"list": "clusters"})
]
Region = Annotated[
    str, Field(title="Region", pattern=REGION, json_schema_extra={"list": "regions"})
]
VmSize = Annotated[
    str,
    Field(
        title="VM size",
        pattern=r"^Standard_[A-Za-z0-9_]{2,40}$",
        json_schema_extra={"list": "vm_sizes"},
    ),
]

# What follows an approval, as pages say it.
GRANTED = "The quota and the queue on the cluster go up within seconds."
KEPT = "Its GPUs are kept for it at once, without charge."
BACK = "On its end date it goes back by itself."
PERSON = "A platform lead takes the task, makes it and marks it done here. It costs nothing before that."
DOWN = "On its end date a platform lead asks you, then takes it down."
# In front of what stands on a team's cluster.
HERE = "in the team’s namespace"


class Gate(StrEnum):
    """Whether the policy may approve an offering at once, or people always decide."""

    SELF_SERVICE = "self_service"
    APPROVAL = "approval"

    @property
    def words(self) -> str:
        """As pages say it."""
        return {
            "self_service": "the policy, when every rule holds",
            "approval": "always people",
        }[self.value]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of an offering a spec is: units, GPUs and USD an hour of each, and how that comes about."""

    count: int
    gpus_each: int = 0
    usd_per_hour_each: Decimal = Decimal(0)
    formula: str = "costs nothing"
    priced: str = ""  # which price of which day it is, where it has one

    @property
    def told(self) -> str:
        """How the price comes about: "2 × $3.67 per GPU-hour (Azure's list price of 24 Nov 2026)"."""
        return self.over("")

    def over(self, time: str) -> str:
        """The same for a length of time: "2 × $3.67 per GPU-hour × 7 days (set by the platform team)"."""
        priced = f" ({self.priced})" if self.priced else ""
        return f"{self.formula}{f' × {time}' if time else ''}{priced}"


class Spec(BaseModel):
    """The base of every spec: nothing is converted, nothing unknown is taken.

    `until`, the team and the reason belong to every request and stand beside it.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    counted: ClassVar[str] = (
        ""  # the field that says how many, "" when there is one of it
    )

    @property
    def count(self) -> int:
        """How many units are asked for; people may approve fewer."""
        return int(getattr(self, self.counted)) if self.counted else 1

    @classmethod
    def least(cls) -> int:
        """The smallest number of units that can be asked for."""
        limits = cls.model_fields[cls.counted].metadata if cls.counted else []
        return next(
            (
                limit.ge
                for limit in limits
                if isinstance(limit, Ge) and isinstance(limit.ge, int)
            ),
            1,
        )

    def fewer(self, count: int) -> dict[str, Any]:
        """The same spec as JSON for `count` units."""
        return self.model_dump(mode="json") | (
            {self.counted: count} if self.counted else {}
        )

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """How much it is; `price` is the flavor's in USD per GPU-hour, `prices` what the offering charges.

        Raises KeyError naming what has no price.
        """
        return Size(count=self.count)

    def title(self, number: str, *, product: str) -> str:
        """What it is in a few words: "2 × A100"; `number` says how many units, `product` names the flavor's GPU."""
        raise NotImplementedError

    def thing(self) -> str:
        """What is taken down when its time is over: "the volume corpus"."""
        raise NotImplementedError

    def set_up(self, count: int, *, at: str) -> str:
        """What a person does to make so many units of it, in a sentence; `at` is " in training", or nothing."""
        return f"Carry out {self.thing()}{at}."

    def gone_with_it(self) -> str:
        """What else is lost when it is let go of."""
        return "; nothing answers there any more"


@dataclass(frozen=True, kw_only=True)
class Offering:
    """Something that may be asked for. `reversible_minutes` is how soon it is undone, None when it is not.

    `end` is what happens at its end, unless platform leads say otherwise. `good_reason` is one that lets people decide
    without asking back, as an example beside the field.
    """

    key: str
    name: str
    line: str
    good_reason: str
    spec: type[Spec]
    unit: str
    gate: Gate
    reversible_minutes: int | None
    provisioner: Provisioner = Provisioner.KUBERNETES
    purpose: str = ""  # as requests are listed by, where the spec does not say it
    judged_as: str = (
        ""  # the environment as which it is judged, whatever its tenancy's is
    )
    after: tuple[str, ...] = ()
    after_by_person: tuple[str, ...] = ()  # where a person makes what the portal could
    priced: str = ""  # what the prices are of: "GiB and month"
    prices: Mapping[str, Decimal] = field(default_factory=dict)  # USD to start with
    end: Terms = NO_TERMS
    may_begin_later: bool = False
    # What it is to finance: the ServiceCategory and ServiceSubcategory of FOCUS 1.2.
    service: tuple[str, str] = ("Compute", "Containers")

    @property
    def on_cluster(self) -> bool:
        """Whether it takes GPUs of a cluster's pool."""
        return "flavor" in self.spec.model_fields

    @property
    def is_listed(self) -> bool:
        """Whether it is made of machines that Azure's price list has, another price in each region."""
        return "vm_size" in self.spec.model_fields

    def units(self, many: int) -> str:
        """What so many are of: "GPUs", "GiB", "replica"."""
        return (
            self.unit
            if many == 1 or self.unit == "GiB" or "tokens" in self.unit
            else f"{self.unit}s"
        )

    @property
    def undone(self) -> str:
        """How soon it is undone, as pages say it."""
        if self.reversible_minutes is None:
            return "Cannot be undone: it is paid until its end."
        minutes = self.reversible_minutes
        return (
            f"Undoing it takes {minutes} minute{'' if minutes == 1 else 's'} at most."
        )

    def title(
        self, spec: Spec, *, product: str = "", count: int | None = None, of: int = 0
    ) -> str:
        """What is asked for in a few words: "2 × A100", "500 GiB volume corpus".

        With `of` it is some of what was asked: "2 of 3 × A100".
        """
        units = spec.count if count is None else count
        return spec.title(
            f"{units:,} of {of:,}" if of > units else f"{units:,}", product=product
        )

    def label(self, name: str) -> str:
        """What a field of its spec is called."""
        return self.spec.model_fields[name].title or name


def in_sentence(title: str) -> str:
    """A title as it stands within a sentence: "2 × A100", "a notebook with 1 × T4"."""
    if not title[:1].isupper():
        return title
    return f"{'an' if title[0] in 'AEIOU' else 'a'} {title[0].lower()}{title[1:]}"
