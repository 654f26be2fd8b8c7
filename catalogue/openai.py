"""A deployment of a hosted model for the team. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from allocations.schedule import Provisioner
from catalogue.offering import DOWN, PERSON, Gate, Offering, Region, Size, Spec
from ui.amounts import rate

# USD per million tokens, an upper estimate: all of the ceiling, all of it answers.
PRICES = {
    "gpt-4o": Decimal("10.00"),
    "gpt-4o-mini": Decimal("0.60"),
    "text-embedding-3-large": Decimal("0.13"),
}


class OpenAiSpec(Spec):
    """An Azure OpenAI endpoint: a deployment of a model with a ceiling of tokens a minute."""

    counted: ClassVar[str] = "thousand_tokens_per_minute"
    region: Region
    model: str = Field(
        title="Model",
        pattern=r"^[a-z0-9][a-z0-9.-]{1,40}$",
        json_schema_extra={"list": "models"},
    )
    thousand_tokens_per_minute: int = Field(
        title="Thousand tokens a minute", ge=1, le=10_000
    )

    deployment_type: Literal["Standard", "GlobalStandard"] = Field(
        default="Standard", title="Deployment type"
    )

    def size(self, *, price: Decimal, prices: Mapping[str, Decimal]) -> Size:
        """As if every token of the ceiling were used."""
        million = prices[self.model]
        return Size(
            count=self.count,
            usd_per_hour_each=million * 60 / 1000,
            formula=f"at most {self.count:,}k tokens a minute × {rate(million)} per million tokens, all used",
        )

    def title(self, number: str, *, product: str) -> str:
        """ "gpt-4o with 30k tokens a minute"."""
        return f"{self.model} with {number}k tokens a minute"

    def thing(self) -> str:
        """By its model."""
        return f"the endpoint for {self.model}"

    def set_up(self, count: int, *, at: str) -> str:
        """With its ceiling."""
        return f"Deploy {self.model} with {count:,}k tokens a minute{at}, for the team’s group."


MADE = "The portal deploys it in Azure OpenAI within minutes, for your team’s group, with its network closed."
CALLED = "It takes tokens of Entra ID and no keys. Its address and an example stand on the page of the request."
DELETED = "On its end date the portal deletes it for good."

OPENAI = Offering(
    key="openai",
    name="Azure OpenAI endpoint",
    line="A deployment of a hosted model for the team.",
    good_reason="The assistant of the help desk: 200 people, at most 40 questions a minute, as measured in the pilot.",
    spec=OpenAiSpec,
    unit="thousand tokens a minute",
    gate=Gate.APPROVAL,
    reversible_minutes=60,
    provisioner=Provisioner.OPENAI,
    after=(MADE, CALLED, DELETED),
    after_by_person=(PERSON, DOWN),
    priced="million tokens",
    prices=PRICES,
    service=("AI and Machine Learning", "Generative AI"),
)
