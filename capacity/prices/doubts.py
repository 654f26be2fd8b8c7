"""Which prices are not believed: those that moved further in one reading than prices do. Pure."""

from collections.abc import Mapping
from decimal import Decimal

# Up or down by this factor; a mistake in the list moves prices by ten or a thousand.
MAX_FACTOR = 3


def doubted(
    before: Mapping[str, Decimal | None], found: Mapping[str, Decimal | None]
) -> dict[str, Decimal]:
    """What was found that is not believed, by how the machine is paid; what is new or gone is believed."""
    return {
        way: usd
        for way, usd in found.items()
        if usd is not None
        and (known := before.get(way)) is not None
        and _jumped(known, usd)
    }


def _jumped(before: Decimal, found: Decimal) -> bool:
    return max(before, found) > MAX_FACTOR * min(before, found)
