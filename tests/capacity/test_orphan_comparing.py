"""Records beside Azure: what is in one of them alone, and whose it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.orphans.comparing import (
    Difference,
    Group,
    Held,
    OrphanKind,
    Recorded,
    differences,
)

MARK = "1a2b3c4d"
SIZE = "Standard_NC4as_T4_v3"
RECORDED = Recorded(
    number=17,
    generation=1,
    resource_group="gpu-platform",
    group=f"qm-{MARK}-vision-17",
    name=SIZE,
    region="eastus",
    zone="",
    vm_size=SIZE,
    machines=2,
    is_reserved=True,
)
HELD = Held(name=SIZE, vm_size=SIZE, machines=2, mark=MARK)
GROUP = Group(
    resource_group="gpu-platform",
    name=RECORDED.group,
    region="eastus",
    mark=MARK,
    team="vision",
    reservations=(HELD,),
)
OTHER = replace(GROUP, name="theirs", mark="", reservations=(replace(HELD, mark=""),))


def found(
    *groups: Group,
    before: list[Recorded] | None = None,
    after: list[Recorded] | None = None,
) -> list[Difference]:
    """In what the portal and Azure differ; `after` is `before` unless told otherwise."""
    before = [] if before is None else before
    return differences(
        groups, mark=MARK, before=before, after=before if after is None else after
    )


def test_what_is_recorded_and_there_is_no_difference() -> None:
    assert found(GROUP, before=[RECORDED]) == []


def test_capitals_of_azure_make_no_difference() -> None:
    shouted = replace(
        GROUP,
        resource_group="GPU-PLATFORM",
        name=GROUP.name.upper(),
        reservations=(replace(HELD, name=SIZE.upper()),),
    )
    assert found(shouted, before=[RECORDED]) == []


def test_what_carries_the_mark_and_has_no_record_is_an_orphan() -> None:
    [one] = found(GROUP)
    assert (one.kind, one.machines, one.team) == (OrphanKind.ORPHANED, 2, "vision")


@pytest.mark.parametrize(
    "theirs",
    [
        OTHER,
        replace(OTHER, mark=MARK),
        replace(OTHER, reservations=(HELD,)),
        replace(GROUP, mark="99999999", reservations=(replace(HELD, mark="99999999"),)),
    ],
)
def test_without_the_mark_on_both_it_is_somebody_elses(theirs: Group) -> None:
    assert [one.kind for one in found(theirs)] == [OrphanKind.FOREIGN]


def test_an_empty_group_of_ours_is_an_orphan_and_one_of_others_is_nothing() -> None:
    assert [one.name for one in found(replace(GROUP, reservations=()))] == [""]
    assert found(replace(OTHER, reservations=())) == []
    assert (
        found(
            replace(GROUP, reservations=()),
            before=[replace(RECORDED, is_reserved=False)],
        )
        == []
    )


def test_what_is_recorded_and_azure_has_not_is_missing() -> None:
    [one] = found(before=[RECORDED])
    assert (one.kind, one.machines, one.recorded) == (OrphanKind.MISSING, 0, RECORDED)


def test_another_number_is_told_with_both() -> None:
    [one] = found(
        replace(GROUP, reservations=(replace(HELD, machines=5),)), before=[RECORDED]
    )
    assert (one.kind, one.machines, one.recorded and one.recorded.machines) == (
        OrphanKind.DIFFERS,
        5,
        2,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [RECORDED]),
        ([RECORDED], []),
        ([RECORDED], [replace(RECORDED, generation=2, machines=5)]),
        (
            [replace(RECORDED, is_reserved=False)],
            [replace(RECORDED, is_reserved=False)],
        ),
    ],
)
def test_what_changes_while_azure_is_listed_is_left_for_the_next_reading(
    before: list[Recorded], after: list[Recorded]
) -> None:
    five = replace(GROUP, reservations=(replace(HELD, machines=5),))
    assert found(five, before=before, after=after) == []


def test_a_stranger_in_a_group_of_ours_is_somebody_elses() -> None:
    both = replace(
        GROUP, reservations=(HELD, Held(name="mine", vm_size=SIZE, machines=1))
    )
    assert [(one.kind, one.name) for one in found(both, before=[RECORDED])] == [
        (OrphanKind.FOREIGN, "mine")
    ]


numbers = st.integers(1, 4)
marks = st.sampled_from(["", MARK, "99999999"])


@given(
    st.dictionaries(numbers, st.tuples(marks, marks, st.integers(0, 3))),
    st.sets(numbers),
)
def test_each_difference_is_named_once_and_nothing_unmarked_is_ours(
    there: dict[int, tuple[str, str, int]], recorded: set[int]
) -> None:
    groups = [
        replace(
            GROUP,
            name=f"g{number}",
            mark=of_group,
            reservations=(replace(HELD, mark=of_one, machines=machines),),
        )
        for number, (of_group, of_one, machines) in there.items()
    ]
    rows = [replace(RECORDED, number=number, group=f"g{number}") for number in recorded]
    told = found(*groups, before=rows)
    assert len({one.key for one in told}) == len(told)
    for one in told:
        number = int(one.group[1:])
        assert (one.recorded is not None) == (number in recorded)
        if one.kind is OrphanKind.ORPHANED:
            assert there[number][:2] == (MARK, MARK)
