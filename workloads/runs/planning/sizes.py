"""The CPUs and memory that a team's queue gives with its GPUs: what it can ever give, and what lacks now. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from provisioning.desired.quantities import CPU, MEMORY
from provisioning.desired.spec import CPU_FLAVOR, TenancySpec
from workloads.reasons.words import size
from workloads.runs.planning.lending import Cell

# CPUs and GiB of memory, by the name of the resource.
Sizes = Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Room:
    """What the queue has of one flavor: its own, and the most that it can ever have, which others may lend."""

    flavor: str
    own: Sizes
    most: Sizes


def rooms_of(spec: TenancySpec, lent: Mapping[Cell, int]) -> Mapping[str, Room]:
    """The rooms of a queue by flavor. `lent` is what others could lend to it.

    Kueue counts by flavor (`provisioning.desired.queues`), and Volcano all of a queue's together
    (`provisioning.desired.volcano`), whatever nodes they are of.
    """
    base = {CPU: spec.base_cpu, MEMORY: spec.base_memory_gib}
    own, borrow = {CPU_FLAVOR: base}, dict[str, Sizes]()
    for one in spec.flavors:
        each = {CPU: one.cpu_per_gpu, MEMORY: one.memory_gib_per_gpu}
        own[one.name] = {name: one.gpus * count for name, count in each.items()}
        borrow[one.name] = {name: one.borrow * count for name, count in each.items()}
    if spec.has_volcano:
        parts = [*own.values(), *borrow.values()]
        every = {name: sum(one[name] for one in parts) for name in (CPU, MEMORY)}
        return {name: Room(flavor=name, own=every, most=every) for name in own}
    return {
        name: Room(
            flavor=name,
            own=sizes,
            most={
                each: count
                + min(borrow.get(name, {}).get(each, 0), lent.get((name, each), 0))
                for each, count in sizes.items()
            },
        )
        for name, sizes in own.items()
    }


def beyond(wanted: Sizes, rooms: Collection[Room]) -> Sizes:
    """The most that a queue can ever give of each resource of which a run takes more; empty where it fits.

    A pod's CPUs and memory come from one flavor. Of several that could take it, the one counts that lacks least.
    """
    found = [
        {
            name: one.most[name]
            for name, count in wanted.items()
            if count > one.most[name]
        }
        for one in rooms
    ]
    return min(found, key=lambda one: (len(one), -sum(one.values())), default={})


@dataclass(frozen=True, kw_only=True)
class Short:
    """What of CPUs and memory is too little now: `waited` for beyond all that can be borrowed, or else `borrowed`."""

    waited: Sizes = field(default_factory=dict)
    borrowed: Sizes = field(default_factory=dict)


def short_of(wanted: Sizes, rooms: Collection[Room], held: Mapping[Cell, int]) -> Short:
    """What a run lacks in its queue, where work holds so much of each flavor and resource."""
    if waited := _missing(wanted, [(one.flavor, one.most) for one in rooms], held):
        return Short(waited=waited)
    return Short(
        borrowed=_missing(wanted, [(one.flavor, one.own) for one in rooms], held)
    )


def _missing(
    wanted: Sizes, rooms: Iterable[tuple[str, Sizes]], held: Mapping[Cell, int]
) -> Sizes:
    """What lacks in the flavor that lacks least; nothing where no flavor is known."""
    found = [
        {
            name: lacks
            for name, count in wanted.items()
            if (lacks := count + held.get((flavor, name), 0) - sizes[name]) > 0
        }
        for flavor, sizes in rooms
    ]
    return min(found, key=lambda one: (len(one), sum(one.values())), default={})


def sizes_words(sizes: Sizes) -> str:
    """ "16 CPUs and 128 GiB of memory"."""
    return " and ".join(size_words(name, count) for name, count in sizes.items())


def size_words(resource: str, count: int) -> str:
    """ "16 CPUs", "128 GiB of memory"."""
    return size(f"{count}Gi" if resource == MEMORY else str(count), resource)
