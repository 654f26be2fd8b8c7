"""Which notebooks of a place the GPUs that it holds carry, and until when. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Held:
    """GPUs of one flavor that a place holds from `starts` until `ends`, None for an end that is not known.

    `notebook` is the server that they were asked for with, None for GPUs of the team.
    """

    allocation: int
    gpus: int
    starts: datetime
    ends: datetime | None
    notebook: int | None = None


@dataclass(frozen=True, kw_only=True)
class Need:
    """GPUs of one flavor that a server takes for as long as it runs; one that waits for them takes none yet."""

    notebook: int
    gpus: int
    waits: bool = False


@dataclass(frozen=True)
class Uncarried:
    """From when on GPUs are too few for a server, and by the end of which allocation; None where they are already."""

    at: datetime
    allocation: int | None


def first_uncarried(
    needs: Sequence[Need], held: Sequence[Held], *, borrow_percent: int, now: datetime
) -> Mapping[int, Uncarried]:
    """When GPUs of a flavor become too few for each server, by its id; one that is carried for good is left out.

    Servers share what their team holds and may borrow, those that come first in `needs` before the others. What was
    asked for with one of them carries that one alone.
    """
    own = {one.notebook for one in held if one.notebook is not None} & {need.notebook for need in needs}
    found: dict[int, Uncarried] = {}
    for each in own:
        found |= _shared([need for need in needs if need.notebook == each], _of(held, {each}), 0, now)
    shared = [need for need in needs if need.notebook not in own]
    return found | _shared(shared, [one for one in held if one.notebook not in own], borrow_percent, now)


def _of(held: Iterable[Held], notebooks: set[int]) -> list[Held]:
    return [one for one in held if one.notebook in notebooks]


def _shared(
    needs: Sequence[Need], held: Sequence[Held], borrow_percent: int, now: datetime
) -> dict[int, Uncarried]:
    found: dict[int, Uncarried] = {}
    left = list(needs)
    ends = {one.ends: one.allocation for one in held if one.ends is not None and one.ends > now}
    for at in [now, *sorted(ends)]:
        there = sum(one.gpus for one in held if one.starts <= at and (one.ends is None or one.ends > at))
        stays = _fitting(left, there + there * borrow_percent // 100)
        found |= {one.notebook: Uncarried(at, ends.get(at)) for one in left if one not in stays}
        left = stays
    return found


def _fitting(needs: Iterable[Need], room: int) -> list[Need]:
    """The servers for which there is room, one after the other; a small one may fit where a large one does not.

    For one that waits there is, as long as it could have its GPUs once others have ended.
    """
    fitting, left = [], room
    for need in needs:
        if need.gpus <= (room if need.waits else left):
            fitting.append(need)
            left -= 0 if need.waits else need.gpus
    return fitting
