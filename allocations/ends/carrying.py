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

    Servers share what their team holds and may borrow. Those with GPUs that were asked for with them come first, and
    end with those; then those that come first in `needs`.
    """
    own = {one.notebook for one in held if one.notebook is not None} & {
        need.notebook for need in needs
    }
    found: dict[int, Uncarried] = {}
    left = sorted(needs, key=lambda need: need.notebook not in own)
    ends = {
        one.ends: one.allocation
        for one in held
        if one.ends is not None and one.ends > now
    }
    for at in [now, *sorted(ends)]:
        there = [
            one
            for one in held
            if one.starts <= at and (one.ends is None or one.ends > at)
        ]
        gpus, ended = (
            sum(one.gpus for one in there),
            own - {one.notebook for one in there},
        )
        room = gpus + gpus * borrow_percent // 100
        stays = _fitting([need for need in left if need.notebook not in ended], room)
        found |= {
            one.notebook: Uncarried(at, ends.get(at))
            for one in left
            if one not in stays
        }
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
