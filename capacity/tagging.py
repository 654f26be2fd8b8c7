"""The tags by which what the portal made in Azure is known: whose it is, and of which installation. Pure."""

from collections.abc import Mapping

MANAGED_BY, MARK = "managed-by", "quartermaster-installation"


def tags(
    key: str, number: int, *, mark: str, team: str, cost_centre: str
) -> Mapping[str, str]:
    """What stands on everything that the portal makes there; `key` says which of its rows the number is of."""
    return {
        MANAGED_BY: "quartermaster",
        MARK: mark,
        key: str(number),
        "team": team,
        "cost-centre": cost_centre,
    }
