"""How a pool that an autoscaler looks after is spoken of. Pure."""


def grows(gpus: int, minutes: int, stopped_by: str = "") -> str:
    """ "grows to 8, usually within 6 minutes": to how many GPUs, and how long it takes where somebody said so.

    `stopped_by` is what lets it grow no further, where that is less than its autoscaler's maximum.
    """
    words = f"grows to {gpus}{f', where {stopped_by} stops it' if stopped_by else ''}"
    if not minutes:
        return words
    return f"{words}, usually within {minutes} minute{'s' if minutes != 1 else ''}"


def free(number: int, *, ready: int, cordoned: int) -> str:
    """ "6 free now"; "8 can be had, 0 ready now" of a pool that has to grow; "0 free now, 4 cordoned or not ready"."""
    if ready < number:
        return f"{number} can be had, {ready} ready now"
    return (
        f"0 free now, {cordoned} cordoned or not ready"
        if cordoned and not number
        else f"{number} free now"
    )
