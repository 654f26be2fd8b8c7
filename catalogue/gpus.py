"""GPUs of a kind for a while: a few for anything, or many for one training. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from allocations.schedule import Terms, WhenOver
from catalogue.offering import BACK, GRANTED, Flavor, Gate, Offering, Size, Spec
from ui.amounts import rate

# Nobody is charged for grace and nobody else has the GPUs meanwhile, so there is none where a click renews, and hours
# where people decide the renewal. A batch job may come to its next checkpoint.
A_DAY_MORE = Terms(when_over=WhenOver.DRAIN, drain_hours=24)
TRAINING_ENDS = Terms(grace_hours=1, when_over=WhenOver.DRAIN, drain_hours=48)


class GpuSpec(Spec):
    """GPUs of a kind for whatever the team does with them."""

    counted: ClassVar[str] = "gpus"
    flavor: Flavor
    gpus: int = Field(title="GPUs", ge=1, le=9_999)
    purpose: Literal["training", "notebook", "inference", "other"] = Field(
        default="training", title="For"
    )

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """Each GPU costs what its flavor costs."""
        return Size(
            count=self.count,
            gpus_each=1,
            usd_per_hour_each=price,
            formula=f"{self.count} × {rate(price)} per GPU-hour",
        )

    def title(self, number: str, *, product: str) -> str:
        """ "2 × A100"."""
        return f"{number} × {product}"

    def thing(self) -> str:
        """Nobody takes GPUs down: they go back by themselves."""
        return "the GPUs"


class TrainingSpec(GpuSpec):
    """A large training: eight GPUs or more."""

    gpus: int = Field(title="GPUs", ge=8, le=9_999)
    purpose: Literal["training"] = "training"


GPUS = Offering(
    key="gpus",
    name="GPUs",
    line="A few GPUs for a while, for anything.",
    good_reason="The detector for the review on 12 December. "
    "On 8 GPUs a run takes 40 hours; with 4 we finish after it.",
    spec=GpuSpec,
    unit="GPU",
    gate=Gate.SELF_SERVICE,
    reversible_minutes=1,
    after=(GRANTED, BACK),
    end=A_DAY_MORE,
    may_begin_later=True,
)
TRAINING = Offering(
    key="training",
    name="Large training",
    line="Eight GPUs or more for one training.",
    good_reason="The next language model: 12 days on 32 GPUs, at the pace of the last one. "
    "With 16 it is late for the release.",
    spec=TrainingSpec,
    unit="GPU",
    gate=Gate.APPROVAL,
    reversible_minutes=1,
    purpose="training",
    after=(GRANTED, BACK),
    end=TRAINING_ENDS,
    may_begin_later=True,
)
