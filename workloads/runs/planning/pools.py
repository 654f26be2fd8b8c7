"""Kinds of GPU that a run can take: which are refused for a template, and which has enough memory and no more. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from fleet.names import product_words, profile_of
from provisioning.desired.first_job import Kind
from ui.amounts import usd
from workloads.templates.library import ON_DEMAND, SPOT, Template


@dataclass(frozen=True, kw_only=True)
class Pool:
    """GPUs of one flavor as a team has them: guaranteed, borrowed at most, and those of one node."""

    kind: Kind
    product: str
    gpus: int
    borrow: int
    per_node: int
    usd_per_hour: Decimal
    # GB of one GPU, or of one slice of it; 0 where nobody knows.
    memory: int = 0
    is_spot: bool = False
    # The flavor of the same product bought the other way, on demand for spot, where the cluster has it, and its USD of
    # a GPU-hour; and hours until a spot node is taken back, on average, 0 where nobody said so.
    other: str = ""
    other_usd: Decimal | None = None
    interruption_hours: int = 0
    # The levels above a node of the flavor's Topology, as node labels from the widest on; none without one.
    levels: tuple[str, ...] = ()
    # Those of the kind on the cluster, whoever holds them, with nodes that it can add; None where nobody counted.
    on_cluster: int | None = None
    # What every node of the kind can run: the oldest driver among them, and the CUDA up to which that goes; empty where
    # no node tells it.
    driver: str = ""
    cuda: str = ""

    def is_beyond_cluster(self, gpus: int) -> bool:
        """Whether so many can never be there. What a team holds exists, even where nodes have gone since."""
        return self.on_cluster is not None and gpus > max(
            self.on_cluster, self.gpus + self.borrow
        )

    @property
    def is_slice(self) -> bool:
        """Whether each of them is a MIG slice of a GPU; slices share no NVLink, and NCCL refuses several of one GPU."""
        return bool(profile_of(self.kind.resource))

    @property
    def device(self) -> str:
        """What one of them is, however it is bought: "A100", or "A100 1g.10gb slice" where each is cut."""
        return product_words(self.product, self.kind.resource)

    @property
    def title(self) -> str:
        """What people call it behind a number: "A100", or "A100 (spot)" beside that."""
        return f"{self.device}{' (spot)' if self.is_spot else ''}"

    @property
    def words(self) -> str:
        """What one of them is, with its memory where it is known."""
        spot = " (spot)" if self.is_spot else ""
        name = (
            f"a slice of {self.product}{spot}"
            if self.is_slice
            else f"{self.product}{spot}"
        )
        return f"{name} with {self.memory} GB" if self.memory else name


@dataclass(frozen=True, kw_only=True)
class Recommended:
    """The kind of GPU with enough memory for a template and the least beyond it, and why in `words`."""

    flavor: str
    pool: Pool
    is_held: bool
    is_chosen: bool
    words: str

    @property
    def advice(self) -> str:
        """What to do, in short."""
        return (
            f"{'Take' if self.is_held else 'Ask for'} {self.flavor}: {self.pool.words}."
        )


def refused_pool(pool: Pool, template: Template) -> str:
    """Why a template does not run on GPUs of a kind; empty when it does."""
    if template.capacity == SPOT and not pool.is_spot:
        return f"{template.title} runs on spot GPUs only, and {pool.kind.name} is on demand."
    if template.capacity == ON_DEMAND and pool.is_spot:
        return f"{template.title} never runs on spot GPUs, which are taken back."
    if pool.memory and pool.memory < template.gpu_memory:
        needed = f"{template.title} needs {template.gpu_memory} GB of memory on a GPU"
        return f"{needed}, and {pool.title} has {pool.memory}."
    return ""


def fitting(
    pools: Mapping[str, Pool], template: Template, *, are_together: bool = False
) -> str:
    """The kind of GPU that a form begins with: the smallest one that the template runs on; empty where none is.

    `are_together` tells that the GPUs of the run exchange what they compute, which slices cannot.
    """
    if not template.gpu_memory:
        return next(
            (name for name, pool in pools.items() if not refused_pool(pool, template)),
            "",
        )
    return min(_enough(pools, template, are_together), default=(0, Decimal(0), ""))[2]


def recommended(
    chosen: str,
    held: Mapping[str, Pool],
    offered: Mapping[str, Pool],
    template: Template,
    *,
    are_together: bool,
) -> Recommended | None:
    """The kind of GPU to take for a template that says how much memory a GPU needs, or None for one that does not.

    It is the smallest that the team holds; one that the cluster offers besides where none of those has enough, or where
    it costs less.
    """
    if not template.gpu_memory or not chosen:
        return None
    own = min(_enough(held, template, are_together), default=None)
    other = min(_enough(_beside(offered, held), template, are_together), default=None)
    if own is None and other is None:
        return None
    is_held = other is None or (own is not None and own[1] <= other[1])
    name = own[2] if is_held and own else other[2] if other else ""
    pool = held[name] if is_held else offered[name]
    words = f"{template.title} needs {template.gpu_memory} GB of memory on a GPU. "
    if is_held and name == chosen:
        words += f"Of what your team holds, {pool.words} is the smallest that has them."
    elif is_held:
        words += f"{_capital(pool.words)} has them and is the smallest that your team holds: take {name}."
    else:
        words += f"{_capital(pool.words)} has them for {usd(pool.usd_per_hour)} an hour"
        words += (
            f", and your team's own cost {usd(held[own[2]].usd_per_hour)}."
            if own
            else ", and none of yours has."
        )
    if are_together and _has_slices(held, template):
        words += " Slices are left out: GPUs that train together have to be whole ones."
    return Recommended(
        flavor=name, pool=pool, is_held=is_held, is_chosen=name == chosen, words=words
    )


def _enough(
    pools: Mapping[str, Pool], template: Template, are_together: bool
) -> Iterator[tuple[int, Decimal, str]]:
    """Memory, price and name of those that a template runs on."""
    for name, pool in pools.items():
        knows = pool.memory or not template.gpu_memory
        if (
            knows
            and not refused_pool(pool, template)
            and not (are_together and pool.is_slice)
        ):
            yield pool.memory, pool.usd_per_hour, name


def _beside(offered: Mapping[str, Pool], held: Iterable[str]) -> dict[str, Pool]:
    return {name: pool for name, pool in offered.items() if name not in held}


def _has_slices(held: Mapping[str, Pool], template: Template) -> bool:
    return any(
        pool.is_slice and not refused_pool(pool, template) for pool in held.values()
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
