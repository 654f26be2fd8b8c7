"""A notebook server with GPUs of its own. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from allocations.schedule import Provisioner, Terms, WhenOver
from catalogue.offering import BACK, HERE, KEPT, PERSON, Flavor, Gate, Offering, Size, Spec
from ui.amounts import cents, gpus

# What a person sits at has had its reminders.
AT_ONCE = Terms(when_over=WhenOver.STOP)


class NotebookSpec(Spec):
    """A notebook server with GPUs of its own."""

    counted: ClassVar[str] = "gpus"
    flavor: Flavor
    gpus: int = Field(title="GPUs", ge=1, le=8)
    image: Literal["pytorch", "tensorflow", "scipy"] = Field(default="pytorch", title="Image")

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """Each GPU costs what its flavor costs."""
        return Size(
            count=self.count,
            gpus_each=1,
            usd_per_hour_each=price,
            formula=f"{self.count} × {cents(price)} per GPU-hour",
        )

    def title(self, number: str, *, product: str) -> str:
        """ "Notebook with 1 × T4"."""
        return f"Notebook with {number} × {product}"

    def thing(self) -> str:
        """Without its GPUs, which go back by themselves."""
        return "the notebook"

    def set_up(self, count: int, *, at: str) -> str:
        """With its image and GPUs."""
        return f"Start a notebook server with {gpus(count)} and the image {self.image} {HERE}{at}."


NOTEBOOK = Offering(
    key="notebook",
    name="Notebook",
    line="A notebook server with its own GPUs.",
    spec=NotebookSpec,
    unit="GPU",
    gate=Gate.SELF_SERVICE,
    reversible_minutes=5,
    provisioner=Provisioner.MANUAL,
    purpose="notebook",
    after=(KEPT, PERSON, BACK),
    end=AT_ONCE,
)
