"""B12: new tenancies made true, database and audit log included, beside a bare loop of the same writes."""

import statistics
from collections.abc import Callable, Sequence
from functools import partial

from django.db import connection
from django.utils import timezone

from bench import rig, tenancies
from bench.results import Better, Goal, Measured
from bench.several import together
from bench.tenancies import Ground
from provisioning.delivery import client_for
from provisioning.desired.manifests import Manifest
from provisioning.models import Tenancy

# As docker-compose.yml starts the worker: so many tenancies are worked on at once. The loop is one, on one connection.
TENANCIES, PROCESSES, PAIRS = 100, 4, 5
LEAST = 0.7


def measure(on: rig.Rig) -> Measured:
    """100 tenancies in each of five turns."""
    return measured(on, count=TENANCIES, pairs=PAIRS)


def measured(on: rig.Rig, *, count: int, pairs: int) -> Measured:
    """Both create the same objects under other names on one sandbox, in turns; figures are objects a second."""
    with tenancies.ground(on) as ground:
        batches = [ground.wanted(count, now=timezone.now()) for _ in range(pairs + 1)]
        singles = [ground.wanted(count // 5, now=timezone.now()) for _ in range(pairs)]
        rig.settle(on)
        objects = sum(len(each) for each in ground.twins(batches[0], "x")) // count
        three(ground, batches[0])
        before = ground.world.writes()
        all_three = [three(ground, batch) for batch in batches[1:]]
        alone = [one_by_one(ground, batch, "bare") for batch in singles]
        # Each side wrote every object once; what is more than that was written for nothing.
        more = (
            ground.world.writes()
            - before
            - objects * pairs * (3 * count + 2 * (count // 5))
        )
    return Measured(
        what=f"{count} new tenancies, {objects} objects each; peer: a bare loop of server-side apply",
        portal=[count * objects / seconds for seconds, _, _ in all_three],
        peer=[count * objects / seconds for _, seconds, _ in all_three],
        unit="objects/s",
        better=Better.PORTAL_OVER_PEER,
        least=LEAST,
        others=[
            Goal(
                f"beside {PROCESSES} loops, ratio",
                statistics.median(many / own for own, _, many in all_three),
            ),
            Goal(
                "one process, ratio",
                statistics.median(bare / portal for portal, bare in alone),
            ),
            Goal("writes too many", more, most=0),
        ],
    )


def three(ground: Ground, batch: Sequence[Tenancy]) -> tuple[float, float, float]:
    """Seconds of the portal's processes for these tenancies, of a bare loop for their twins, and of as many loops."""
    twins, others, shares = (
        ground.twins(batch, "bare"),
        ground.twins(batch, "many"),
        range(PROCESSES),
    )
    portal = together(
        [partial(_worker, ground, batch[share::PROCESSES]) for share in shares]
    )
    bare = together([partial(_loop, ground, twins)])
    return (
        portal,
        bare,
        together(
            [partial(_loop, ground, others[share::PROCESSES]) for share in shares]
        ),
    )


def one_by_one(
    ground: Ground, batch: Sequence[Tenancy], mark: str
) -> tuple[float, float]:
    """The same in this process, one call after another."""
    twins = ground.twins(batch, mark)
    return ground.provision(batch, now=timezone.now()), ground.provision_bare(twins)


def _worker(ground: Ground, share: Sequence[Tenancy]) -> Callable[[], float]:
    connection.ensure_connection()
    client_for(ground.cluster).version()
    return partial(ground.provision, share, now=timezone.now())


def _loop(ground: Ground, share: Sequence[Sequence[Manifest]]) -> Callable[[], float]:
    own = ground.of_this_process()
    own.bare.version()
    return partial(own.provision_bare, share)
