"""A model that answers production requests. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar

from pydantic import Field

from allocations.schedule import Provisioner, Terms, WhenOver
from catalogue.offering import (
    BACK,
    HERE,
    KEPT,
    PERSON,
    Flavor,
    Gate,
    Offering,
    Size,
    Spec,
)
from ui.amounts import gpus, rate

MODEL = r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$"
# Others depend on what runs, so it never ends by itself.
ENDPOINT_ENDS = Terms(grace_hours=4, when_over=WhenOver.DRAIN, drain_hours=24)


class EndpointSpec(Spec):
    """A production inference endpoint: replicas of a model that answer requests."""

    counted: ClassVar[str] = "replicas"
    flavor: Flavor
    model: str = Field(
        title="Model",
        min_length=1,
        max_length=80,
        pattern=MODEL,
    )
    gpus_per_replica: int = Field(title="GPUs per replica", ge=1, le=8)
    replicas: int = Field(title="Replicas", ge=1, le=64)

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """Each replica costs what its GPUs cost."""
        return Size(
            count=self.count,
            gpus_each=self.gpus_per_replica,
            usd_per_hour_each=self.gpus_per_replica * price,
            formula=f"{self.count} × {gpus(self.gpus_per_replica)} × {rate(price)} per GPU-hour",
        )

    def title(self, number: str, *, product: str) -> str:
        """ "Endpoint of 2 × 1 A100 for mistral-7b"."""
        return (
            f"Endpoint of {number} × {self.gpus_per_replica} {product} for {self.model}"
        )

    def thing(self) -> str:
        """By its model."""
        return f"the endpoint for {self.model}"

    def set_up(self, count: int, *, at: str) -> str:
        """With its replicas and GPUs."""
        replicas = "1 replica" if count == 1 else f"{count} replicas"
        return f"Serve {self.model} with {replicas} of {gpus(self.gpus_per_replica)} {HERE}{at}."


ENDPOINT = Offering(
    key="endpoint",
    name="Production inference endpoint",
    line="A model that answers production requests.",
    good_reason="The ranking gets 300 requests a second at noon. "
    "Two replicas answered in 80 ms in the test, one in 400.",
    spec=EndpointSpec,
    unit="replica",
    gate=Gate.APPROVAL,
    reversible_minutes=60,
    provisioner=Provisioner.MANUAL,
    purpose="inference",
    judged_as="production",
    after=(KEPT, PERSON, BACK),
    end=ENDPOINT_ENDS,
    service=("AI and Machine Learning", "AI Platforms"),
)
