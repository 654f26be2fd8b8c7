"""What a service may promise: its tier, with an objective for availability and one for latency. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Objective:
    """The share of requests, from 0 to 1, that must not fail, and the seconds within which 99 of 100 are answered."""

    title: str
    example: str
    availability: Decimal
    p99_seconds: int | float

    @property
    def may_fail(self) -> Decimal:
        """The share of requests that may fail: what the error budget is made of."""
        return 1 - self.availability

    @property
    def words(self) -> str:
        """ "99.9 % answered, 99 of 100 within 2 s"."""
        return f"{self.availability * 100:.2f} % answered, 99 of 100 within {seconds(self.p99_seconds)}"


class Tier(StrEnum):
    """What a service is for; the value is stored for ever."""

    REAL_TIME = "real_time"
    NEAR_REAL_TIME = "near_real_time"
    BATCH = "batch"

    @property
    def objective(self) -> Objective:
        """What a service of this tier promises."""
        return OBJECTIVES[self]


OBJECTIVES: Mapping[Tier, Objective] = {
    Tier.REAL_TIME: Objective(
        "Real-time", "chat with customers, ranking", Decimal("0.9995"), 0.2
    ),
    Tier.NEAR_REAL_TIME: Objective(
        "Near real-time", "moderation, recommendations", Decimal("0.999"), 2
    ),
    Tier.BATCH: Objective("Batch", "documents, embeddings", Decimal("0.995"), 3_600),
}
CHOICES = [(tier.value, tier.objective.title) for tier in Tier]


def seconds(value: float) -> str:
    """A latency as people read it: "180 ms", "2 s", "25 min", "1 h"."""
    if round(value * 1_000) < 1_000:
        return f"{value * 1_000:.0f} ms"
    if value < 60:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 3_600 else f"{value / 3_600:.3g} h"
