"""What is to be done next in Azure so that a reservation is what is wanted of it. Pure.

One step at a time, from what Azure says now: whoever dies in between is followed by somebody who looks again. A pool is
made once there is capacity behind it, as AKS makes one without it otherwise and does not say so. The order of taking
down is Azure's: first no machine is associated, then no reservation is in the group, then the group goes.
https://learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview
"""

from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """What a worker does now."""

    MAKE_GROUP = "make_group"
    RESERVE = "reserve"
    RESIZE = "resize"
    MAKE_POOL = "make_pool"
    SCALE_POOL = "scale_pool"
    DELETE_POOL = "delete_pool"
    RELEASE = "release"
    DELETE_GROUP = "delete_group"
    WAIT = "wait"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A reservation as Azure has it: machines reserved, and those that count towards it though they may not run.

    `is_busy` while Azure works on it, whoever asked for that. `has_failed` where the last change of it did.
    """

    machines: int
    associated: int = 0
    is_busy: bool = False
    has_failed: bool = False


@dataclass(frozen=True, kw_only=True)
class FoundPool:
    """The node pool that takes its machines from the reservation; `is_joined` where AKS really has it do so."""

    maximum: int
    nodes: int = 0
    is_joined: bool = True
    is_busy: bool = False


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What Azure has now; None for what is not there."""

    group: bool
    reservation: Found | None = None
    pool: FoundPool | None = None


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How many machines, 0 for none any more, and whether a pool of nodes is made of them.

    `may_remake_pool` is for a pool that AKS did not join to the reservation: it is made anew once, not for ever.
    """

    machines: int
    with_pool: bool = False
    may_remake_pool: bool = True


def next_step(wanted: Wanted, observed: Observed) -> Step:
    """The one thing that brings Azure nearer to what is wanted; NOTHING when it is as wanted."""
    reservation, pool = observed.reservation, observed.pool
    if (reservation is not None and reservation.is_busy) or (
        pool is not None and pool.is_busy
    ):
        return Step.WAIT
    return _up(wanted, observed) if wanted.machines else _down(observed)


def _up(wanted: Wanted, observed: Observed) -> Step:
    if not observed.group:
        return Step.MAKE_GROUP
    if observed.reservation is None:
        return Step.RESERVE
    # A change that failed leaves what was reserved before, and has to be undone by asking for a number again.
    if (
        observed.reservation.machines != wanted.machines
        or observed.reservation.has_failed
    ):
        return Step.RESIZE
    return _pool_up(wanted, observed.pool) if wanted.with_pool else Step.NOTHING


def _pool_up(wanted: Wanted, pool: FoundPool | None) -> Step:
    if pool is None:
        return Step.MAKE_POOL
    if not pool.is_joined and not pool.nodes and wanted.may_remake_pool:
        # AKS cannot be asked to join it later: it is made anew, on which nothing runs yet.
        return Step.DELETE_POOL
    return Step.NOTHING if pool.maximum == wanted.machines else Step.SCALE_POOL


def _down(observed: Observed) -> Step:
    if observed.pool is not None:
        return Step.DELETE_POOL
    if observed.reservation is not None:
        return Step.WAIT if observed.reservation.associated else Step.RELEASE
    return Step.DELETE_GROUP if observed.group else Step.NOTHING
