"""What a reservation, its group and its pool are called in Azure: always the same, and nobody else's. Pure.

https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
"""

# Digits and letters of a pool's number, which has room for eleven of them beside the first letter.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# The tag that bears its number.
NUMBER = "quartermaster-reservation"


def group_name(number: int, *, mark: str, team: str) -> str:
    """The capacity reservation group: "qm-1a2b3c4d-vision-17"."""
    return f"qm-{mark}-{team}-{number}"


def reservation_name(vm_size: str, zone: str) -> str:
    """The reservation in its group, of which there is one: "Standard_NC24ads_A100_v4-1"."""
    return f"{vm_size}-{zone}" if zone else vm_size


def pool_name(number: int) -> str:
    """The node pool in its cluster, at most twelve small letters and digits: "qmh" for the seventeenth."""
    digits, rest = "", number
    while rest:
        rest, digit = divmod(rest, len(DIGITS))
        digits = DIGITS[digit] + digits
    return f"qm{digits}"
