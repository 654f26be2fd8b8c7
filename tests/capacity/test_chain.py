"""What stops so many GPUs more: one situation per link of the chain, and combinations."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.chain.facts import (
    Facts,
    Machine,
    Nodes,
    Pool,
    Promised,
    Queue,
    Quota,
    Reserved,
    ResourceQuota,
)
from capacity.chain.links import Layer, Question, blocking, limit_for, links, tightest
from capacity.chain.words import age, verdict

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
FAMILY = "standardNCADSA100v4Family"
QUEUE = Queue(
    name="qm-vision", nominal=6, borrowable=4, used=3, idle_elsewhere=2, seen_at=NOW
)
# Two nodes of 4 GPUs stand, of at most 12; 6 GPUs were granted; Azure lets 30 machines of this family run.
PLENTY = Facts(
    product="A100",
    gpus_per_node=4,
    machine=Machine(name="Standard_NC96ads_A100_v4", vcpus=96),
    family=Quota(name=FAMILY, region="eastus", limit=30 * 96, used=2 * 96, seen_at=NOW),
    regional=Quota(
        name="cores", region="eastus", limit=100 * 96, used=10 * 96, seen_at=NOW
    ),
    pool=Pool(name="a100", nodes=2, maximum=12, seen_at=NOW),
    nodes=Nodes(ready=8, cordoned=0, seen_at=NOW),
    promised=Promised(granted=6, obtainable=48),
    busy=5,
    queue=QUEUE,
    namespace=ResourceQuota(hard=10, used=3, seen_at=NOW),
)


def quota(*, machines: int, used: int, name: str = FAMILY) -> Quota:
    """A quota of so many machines of 96 vCPUs, of which some run."""
    return Quota(
        name=name, region="eastus", limit=machines * 96, used=used * 96, seen_at=NOW
    )


def changed(**fields: Any) -> Facts:
    """Plenty of everything but for what is said."""
    return replace(PLENTY, **fields)


POOL_OF_100 = Pool(name="a100", nodes=2, maximum=100, seen_at=NOW)
FIXED = Pool(name="a100", nodes=2, maximum=None, seen_at=NOW)
RESERVED = Reserved(name="qm-crg-7", machines=6, used=2, seen_at=NOW)

SITUATIONS = [
    # what is asked, the facts, by which links in which order it is stopped, with how much left
    ("nothing stops it", 16, PLENTY, []),
    (
        "the family's quota",
        16,
        changed(family=quota(machines=4, used=2)),
        [(Layer.FAMILY, 10)],
    ),
    (
        "what others run in the family counts",
        16,
        changed(family=quota(machines=9, used=8)),
        [(Layer.FAMILY, 6)],
    ),
    (
        "vCPUs that are no whole machine",
        4,
        changed(
            family=Quota(
                name=FAMILY,
                region="eastus",
                limit=2 * 96 + 95,
                used=2 * 96,
                seen_at=NOW,
            )
        ),
        [(Layer.FAMILY, 2)],
    ),
    (
        "a quota that was lowered below its use",
        4,
        changed(family=quota(machines=1, used=2)),
        [(Layer.FAMILY, 2)],
    ),
    (
        "the region's quota",
        16,
        changed(regional=quota(machines=12, used=10, name="cores")),
        [(Layer.REGIONAL, 10)],
    ),
    (
        "the pool's maximum",
        48,
        changed(family=quota(machines=99, used=2)),
        [(Layer.POOL, 42)],
    ),
    (
        "cordoned nodes count towards the maximum",
        40,
        changed(
            nodes=Nodes(ready=4, cordoned=4, seen_at=NOW),
            family=quota(machines=99, used=2),
        ),
        [(Layer.POOL, 38)],
    ),
    ("nodes that nothing adds to", 4, changed(pool=FIXED), [(Layer.NODES, 2)]),
    (
        "nodes before the quota, where both stop it",
        200,
        changed(pool=FIXED, family=quota(machines=20, used=2)),
        [(Layer.NODES, 2), (Layer.FAMILY, 74)],
    ),
    (
        "the quota before the pool",
        60,
        changed(family=quota(machines=6, used=2)),
        [(Layer.FAMILY, 18), (Layer.POOL, 42)],
    ),
    (
        "of two that are alike the one further up",
        60,
        changed(
            family=quota(machines=12, used=2),
            regional=quota(machines=20, used=10, name="cores"),
        ),
        [(Layer.FAMILY, 42), (Layer.REGIONAL, 42), (Layer.POOL, 42)],
    ),
    (
        "a reservation needs no quota",
        16,
        changed(family=quota(machines=6, used=6), reserved=RESERVED),
        [],
    ),
    (
        "beyond a reservation the quota counts",
        24,
        changed(family=quota(machines=6, used=6), reserved=RESERVED),
        [(Layer.FAMILY, 18)],
    ),
    (
        "more was granted than there is",
        1,
        changed(promised=Promised(granted=50, obtainable=48)),
        [(Layer.POOL, 0)],
    ),
    (
        "without Azure the nodes",
        3,
        changed(
            machine=None,
            family=None,
            regional=None,
            pool=None,
            promised=Promised(granted=6, obtainable=8),
        ),
        [(Layer.NODES, 2)],
    ),
    (
        "without Azure a pool that people said",
        64,
        changed(machine=None, family=None, regional=None),
        [(Layer.POOL, 42)],
    ),
]


@pytest.mark.parametrize(
    ("more", "facts", "stops"),
    [one[1:] for one in SITUATIONS],
    ids=[one[0] for one in SITUATIONS],
)
def test_a_grant_is_stopped_by_the_link_that_has_the_least_room(
    more: int, facts: Facts, stops: list[tuple[Layer, int]]
) -> None:
    found = blocking(links(facts, Question.GRANT), more)
    assert [(one.layer, one.room) for one in found] == stops


STARTS = [
    ("what is guaranteed and idle, and what others leave", 5, PLENTY, []),
    ("borrowing ends where others leave nothing", 6, PLENTY, [(Layer.QUEUE, 5)]),
    (
        "borrowing ends at its limit",
        9,
        changed(queue=replace(QUEUE, used=8, idle_elsewhere=40), namespace=None),
        [(Layer.QUEUE, 2)],
    ),
    (
        "the namespace's quota, where it is tighter",
        5,
        changed(namespace=ResourceQuota(hard=6, used=3, seen_at=NOW)),
        [(Layer.NAMESPACE, 3)],
    ),
    (
        "nodes that are busy with work of others",
        4,
        changed(pool=FIXED, busy=7),
        [(Layer.NODES, 1)],
    ),
    (
        "a queue that is stopped",
        1,
        changed(queue=replace(QUEUE, admits=False)),
        [(Layer.QUEUE, 0)],
    ),
    (
        "Azure, though the team holds them",
        5,
        changed(family=quota(machines=2, used=2)),
        [(Layer.FAMILY, 3)],
    ),
]


@pytest.mark.parametrize(
    ("more", "facts", "stops"),
    [one[1:] for one in STARTS],
    ids=[one[0] for one in STARTS],
)
def test_a_start_is_stopped_by_what_runs_and_by_the_teams_own_limits(
    more: int, facts: Facts, stops: list[tuple[Layer, int]]
) -> None:
    found = blocking(links(facts, Question.START), more)
    assert [(one.layer, one.room) for one in found] == stops


def test_the_answer_names_the_link_what_comes_next_and_what_can_be_done() -> None:
    facts = changed(family=quota(machines=6, used=2))
    found = verdict(
        links(facts, Question.GRANT), 60, product="A100", question=Question.GRANT
    )
    assert not found.fits
    assert (
        found.sentence
        == f"60 × A100 more: stopped at the subscription quota of {FAMILY}, 18 left."
    )
    assert found.then == "Then the maximum of node pool a100 stops it: 42 left."
    assert found.advice == "An increase takes days: ask for it now."


def test_a_queue_that_is_stopped_is_said_so_and_no_grant_is_stopped_by_it() -> None:
    facts = changed(queue=replace(QUEUE, admits=False))
    found = verdict(
        links(facts, Question.START), 1, product="A100", question=Question.START
    )
    assert (
        found.sentence
        == "1 × A100 more: stopped at the team's ClusterQueue, which admits nothing now."
    )
    assert found.advice.startswith("The queue is stopped")
    assert verdict(
        links(facts, Question.GRANT), 1, product="A100", question=Question.GRANT
    ).fits


def test_what_fits_says_which_link_is_the_tightest() -> None:
    found = verdict(
        links(PLENTY, Question.GRANT), 16, product="A100", question=Question.GRANT
    )
    assert (found.fits, found.then, found.advice) == (True, "", "")
    assert (
        found.sentence
        == "16 × A100 more can be granted. The tightest link is the maximum of node pool a100: 42 left."
    )


def test_a_reading_that_is_old_says_how_old() -> None:
    family, *_ = links(PLENTY, Question.GRANT)
    assert age(family, NOW + timedelta(minutes=30)) == ""
    assert age(family, NOW + timedelta(minutes=95)) == "as of 1 h ago"
    promised = next(
        one for one in links(PLENTY, Question.GRANT) if one.layer is Layer.PROMISED
    )
    assert age(promised, NOW + timedelta(days=9)) == ""


def test_more_than_can_be_had_and_more_than_is_reserved_is_said() -> None:
    over = changed(
        promised=Promised(granted=50, obtainable=48),
        reserved=Reserved(name="r", machines=1, used=2, seen_at=NOW),
    )
    details = {one.layer: one.detail for one in links(over, Question.GRANT)}
    assert details[Layer.PROMISED] == "2 more were granted than can be had"
    assert (
        details[Layer.RESERVATION]
        == "2 of 1 machines in use; 1 more than reserved, without a guarantee"
    )


numbers = st.integers(0, 40)


@given(
    family=st.tuples(numbers, numbers),
    regional=st.tuples(numbers, numbers),
    nodes=st.tuples(numbers, numbers),
    maximum=st.none() | numbers,
    reserved=st.tuples(numbers, numbers),
    granted=st.integers(0, 300),
    busy=st.integers(0, 300),
    question=st.sampled_from(Question),
)
def test_the_tightest_link_lets_through_exactly_its_room(
    family: tuple[int, int],
    regional: tuple[int, int],
    nodes: tuple[int, int],
    maximum: int | None,
    reserved: tuple[int, int],
    granted: int,
    busy: int,
    question: Question,
) -> None:
    facts = changed(
        family=quota(machines=family[0], used=family[1]),
        regional=quota(machines=regional[0], used=regional[1], name="cores"),
        nodes=Nodes(ready=4 * nodes[0], cordoned=4 * nodes[1], seen_at=NOW),
        pool=Pool(name="a100", nodes=sum(nodes), maximum=maximum, seen_at=NOW),
        reserved=Reserved(
            name="r", machines=reserved[0], used=reserved[1], seen_at=NOW
        ),
        promised=Promised(granted=granted, obtainable=160),
        busy=busy,
    )
    chain = links(facts, question)
    room = tightest(chain)
    assert room is not None
    assert room.room is not None
    assert not blocking(chain, room.room)
    assert blocking(chain, room.room + 1)[0] == room
    assert all(one.room is None or one.room >= 0 for one in chain)


@given(
    st.integers(1, 200),
    st.integers(0, 30),
    st.integers(0, 3000),
    st.integers(0, 60),
    st.sampled_from([None, RESERVED]),
    st.sampled_from([*Question]),
    st.sampled_from([Layer.FAMILY, Layer.REGIONAL]),
)
def test_the_limit_that_an_ask_needs_lets_it_through_and_one_less_does_not(
    more: int,
    machines: int,
    used: int,
    granted: int,
    reserved: Reserved | None,
    question: Question,
    layer: Layer,
) -> None:
    name = {Layer.FAMILY: "family", Layer.REGIONAL: "regional"}[layer]

    def room(limit: int) -> int:
        allowed: dict[str, Any] = {
            name: Quota(
                name=FAMILY, region="eastus", limit=limit, used=used, seen_at=NOW
            )
        }
        [link] = [
            one
            for one in links(replace(facts, **allowed), question)
            if one.layer is layer
        ]
        assert link.room is not None
        return link.room

    short = Quota(
        name=FAMILY, region="eastus", limit=machines * 96, used=used, seen_at=NOW
    )
    promised = Promised(granted=granted, obtainable=48)
    facts = changed(**{name: short}, promised=promised, reserved=reserved, busy=granted)
    needed = limit_for(facts, layer, more, question)
    assert room(needed) >= more
    if needed > used:
        assert room(needed - 1) < more


def test_spot_machines_have_a_quota_of_their_own() -> None:
    spot = changed(
        family=None, regional=quota(machines=3, used=0, name="lowPriorityCores")
    )
    said = verdict(
        links(spot, Question.GRANT), 48, product="A100", question=Question.GRANT
    ).sentence
    assert (
        said
        == "48 × A100 more: stopped at the subscription quota of spot machines, 14 left."
    )
