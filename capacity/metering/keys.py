"""How the limits of quotas are called. Pure."""

from typing import NamedTuple

QUOTA = "quota:"


class QuotaKey(NamedTuple):
    """A quota of a subscription in a region, in small letters."""

    subscription: str
    region: str
    family: str


def quota_key(subscription: str, region: str, family: str) -> str:
    """The key of the limit of a quota."""
    return f"{QUOTA}{subscription}/{region}/{family}".lower()


def parsed_quota(key: str) -> QuotaKey | None:
    """The parts of a key; None for a limit that is no quota of Azure's."""
    parts = key.removeprefix(QUOTA).split("/", 2)
    return QuotaKey(*parts) if key.startswith(QUOTA) and len(parts) == 3 else None
