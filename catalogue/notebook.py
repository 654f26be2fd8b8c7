"""A notebook server with GPUs of its own. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field

from allocations.schedule import Provisioner, Terms, WhenOver
from catalogue.offering import BACK, KEPT, Flavor, Gate, Offering, Size, Spec
from ui.amounts import rate

LAUNCHED = (
    "The portal starts the notebook as soon as they are on the cluster. It costs nothing before it is ready; from then "
    "on its GPUs are kept for it and cost until they are given back or end, also while it is stopped."
)
Profile = Annotated[
    str,
    Field(
        title="Profile",
        pattern=r"^[a-z0-9]([a-z0-9_-]{0,38}[a-z0-9])?$",
        json_schema_extra={"list": "profiles"},
    ),
]
# What a person sits at has had its reminders.
AT_ONCE = Terms(when_over=WhenOver.STOP)


class NotebookSpec(Spec):
    """A notebook server with GPUs of its own."""

    counted: ClassVar[str] = "gpus"
    flavor: Flavor
    gpus: int = Field(title="GPUs", ge=1, le=8)
    profile: Profile

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """Each GPU costs what its flavor costs."""
        return Size(
            count=self.count,
            gpus_each=1,
            usd_per_hour_each=price,
            formula=f"{self.count} × {rate(price)} per GPU-hour",
        )

    def title(self, number: str, *, product: str) -> str:
        """ "Notebook with 1 × T4"."""
        return f"Notebook with {number} × {product}"

    def thing(self) -> str:
        """Without its GPUs, which go back by themselves."""
        return "the notebook"


NOTEBOOK = Offering(
    key="notebook",
    name="Notebook",
    line="A notebook server with its own GPUs.",
    good_reason="The course from 4 to 15 January: 20 students, two hours a day. "
    "A third of a GPU each was enough last time.",
    spec=NotebookSpec,
    unit="GPU",
    gate=Gate.SELF_SERVICE,
    reversible_minutes=5,
    provisioner=Provisioner.JUPYTERHUB,
    purpose="notebook",
    after=(KEPT, LAUNCHED, BACK),
    end=AT_ONCE,
    service=("AI and Machine Learning", "Machine Learning"),
)
