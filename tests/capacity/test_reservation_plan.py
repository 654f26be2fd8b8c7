"""The next step of a reservation from what Azure says, and that steps end where they should, in Azure's own order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.reservations.plan import (
    Found,
    FoundPool,
    Observed,
    Step,
    Wanted,
    next_step,
)

FOUR, FOUR_NODES, NONE = (
    Wanted(machines=4),
    Wanted(machines=4, with_pool=True),
    Wanted(machines=0),
)
EMPTY = Observed(group=False)
RESERVED = Observed(group=True, reservation=Found(machines=4))
WITH_NODES = replace(RESERVED, pool=FoundPool(maximum=4))


@pytest.mark.parametrize(
    ("wanted", "observed", "step"),
    [
        (FOUR, EMPTY, Step.MAKE_GROUP),
        (FOUR, Observed(group=True), Step.RESERVE),
        (FOUR, RESERVED, Step.NOTHING),
        (FOUR, Observed(group=True, reservation=Found(machines=2)), Step.RESIZE),
        (
            FOUR,
            Observed(group=True, reservation=Found(machines=6, associated=6)),
            Step.RESIZE,
        ),
        (
            FOUR,
            Observed(group=True, reservation=Found(machines=4, has_failed=True)),
            Step.RESIZE,
        ),
        (
            FOUR,
            Observed(group=True, reservation=Found(machines=2, is_busy=True)),
            Step.WAIT,
        ),
        (FOUR_NODES, Observed(group=True), Step.RESERVE),
        (FOUR_NODES, RESERVED, Step.MAKE_POOL),
        (FOUR_NODES, WITH_NODES, Step.NOTHING),
        (FOUR_NODES, replace(RESERVED, pool=FoundPool(maximum=2)), Step.SCALE_POOL),
        (
            FOUR_NODES,
            replace(RESERVED, pool=FoundPool(maximum=4, is_busy=True)),
            Step.WAIT,
        ),
        (
            FOUR_NODES,
            replace(RESERVED, pool=FoundPool(maximum=4, is_joined=False)),
            Step.DELETE_POOL,
        ),
        (
            FOUR_NODES,
            replace(RESERVED, pool=FoundPool(maximum=4, is_joined=False, nodes=1)),
            Step.NOTHING,
        ),
        (
            replace(FOUR_NODES, may_remake_pool=False),
            replace(RESERVED, pool=FoundPool(maximum=4, is_joined=False)),
            Step.NOTHING,
        ),
        (
            replace(FOUR_NODES, may_remake_pool=False),
            replace(RESERVED, pool=FoundPool(maximum=2, is_joined=False)),
            Step.SCALE_POOL,
        ),
        (replace(FOUR_NODES, may_remake_pool=False), RESERVED, Step.MAKE_POOL),
        (NONE, WITH_NODES, Step.DELETE_POOL),
        (NONE, RESERVED, Step.RELEASE),
        (
            NONE,
            Observed(group=True, reservation=Found(machines=4, associated=2)),
            Step.WAIT,
        ),
        (NONE, Observed(group=True), Step.DELETE_GROUP),
        (NONE, EMPTY, Step.NOTHING),
    ],
)
def test_the_next_step_follows_from_what_azure_says(
    wanted: Wanted, observed: Observed, step: Step
) -> None:
    assert next_step(wanted, observed) is step


founds = st.builds(
    Found, machines=st.integers(0, 9), has_failed=st.booleans(), associated=st.just(0)
)
pools = st.builds(
    FoundPool,
    maximum=st.integers(0, 9),
    is_joined=st.booleans(),
    nodes=st.integers(0, 1),
)
states = st.builds(
    Observed, group=st.just(True), reservation=founds, pool=st.none() | pools
) | st.sampled_from([EMPTY, Observed(group=True)])


@given(st.integers(0, 9), st.booleans(), states)
def test_steps_that_work_end_where_nothing_is_left_to_do(
    machines: int, with_pool: bool, found: Observed
) -> None:
    wanted = Wanted(machines=machines, with_pool=with_pool)
    done: list[Step] = []
    while (step := next_step(wanted, found)) is not Step.NOTHING:
        done.append(step)
        found = _after(step, wanted, found)
        assert len(done) <= 6
    assert done == sorted(done, key=ORDER.index)
    if not machines:
        assert found == EMPTY
        return
    assert found.reservation is not None
    assert (found.reservation.machines, found.reservation.has_failed) == (
        machines,
        False,
    )
    if with_pool:
        assert found.pool is not None
        assert found.pool.maximum == machines
        assert found.pool.is_joined or found.pool.nodes


ORDER = [
    *(Step.MAKE_GROUP, Step.RESERVE, Step.RESIZE),
    *(
        Step.DELETE_POOL,
        Step.MAKE_POOL,
        Step.SCALE_POOL,
        Step.RELEASE,
        Step.DELETE_GROUP,
    ),
]


def _after(step: Step, wanted: Wanted, found: Observed) -> Observed:
    """What Azure has once a step has worked."""
    pool = FoundPool(maximum=wanted.machines)
    return {
        Step.MAKE_GROUP: replace(found, group=True),
        Step.RESERVE: replace(found, reservation=Found(machines=wanted.machines)),
        Step.RESIZE: replace(found, reservation=Found(machines=wanted.machines)),
        Step.MAKE_POOL: replace(found, pool=pool),
        Step.SCALE_POOL: replace(
            found, pool=found.pool and replace(found.pool, maximum=wanted.machines)
        ),
        Step.DELETE_POOL: replace(found, pool=None),
        Step.RELEASE: replace(found, reservation=None),
        Step.DELETE_GROUP: replace(found, group=False),
    }[step]
