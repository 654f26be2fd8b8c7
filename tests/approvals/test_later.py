"""From when the very same ask would be automatic: from that second on it is, and a second before it is not."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from allocations.ends.actions import expire
from allocations.models import Allocation
from approvals.models import Request
from approvals.requests.actions import judge, submit
from policy.document import Policy, Thresholds
from policy.evaluation import Outcome, evaluate, later_automatic
from policy.rules import Ask, Coming, Standing
from tests import factories
from tests.approvals.asks import DAY, NOW, ask, standing
from tests.scene import Scene

SECOND = timedelta(seconds=1)
DEFAULT = Policy()
USD = (Decimal(0), Decimal(900), Decimal(2_000))
EVENTS = st.lists(
    st.builds(
        Coming,
        st.integers(1, 59 * 24).map(lambda hours: NOW + timedelta(hours=hours)),
        st.integers(0, 8),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from(USD),
        st.sampled_from(USD),
    ),
    max_size=6,
    unique_by=lambda event: event.at,
).map(lambda events: tuple(sorted(events, key=lambda event: event.at)))


def at(moment: datetime, known: Standing) -> Standing:
    """The standing as it will be at a moment, by what is known to come."""
    past = [event for event in known.coming if event.at <= moment]
    return replace(
        known,
        now=moment,
        free_gpus=(known.free_gpus or 0) + sum(event.free for event in past),
        recent_team_gpus=known.recent_team_gpus - sum(event.team for event in past),
        recent_person_gpus=known.recent_person_gpus
        - sum(event.person for event in past),
        recent_team_usd=(known.recent_team_usd or Decimal(0))
        - sum(event.team_usd for event in past),
        recent_person_usd=(known.recent_person_usd or Decimal(0))
        - sum(event.person_usd for event in past),
    )


def is_automatic(asked: Ask, known: Standing, moment: datetime) -> bool:
    """Whether the same ask for the same time is automatic at a moment."""
    later = replace(asked, until=moment + (asked.until - known.now))
    return evaluate(later, at(moment, known), DEFAULT).outcome is Outcome.AUTOMATIC


@given(
    EVENTS,
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(1, 16),
    st.integers(0, 6_000),
    st.integers(0, 6_000),
)
def test_it_is_the_first_second_from_which_it_is_automatic(
    events: tuple[Coming, ...],
    count: int,
    free: int,
    team: int,
    person: int,
    days: int,
    of_team: int,
    of_person: int,
) -> None:
    asked = ask(count, length=days * DAY)
    known = standing(
        free_gpus=free,
        recent_team_gpus=team,
        recent_person_gpus=person,
        coming=events,
        recent_team_usd=Decimal(of_team),
        recent_person_usd=Decimal(of_person),
    )
    later = later_automatic(asked, known, DEFAULT)
    if later is not None:
        assert is_automatic(asked, known, later)
        assert not is_automatic(asked, known, later - SECOND)
    elif not is_automatic(asked, known, NOW):
        assert not any(is_automatic(asked, known, event.at) for event in events)


def test_what_is_automatic_already_has_no_later_moment() -> None:
    assert (
        later_automatic(ask(), standing(coming=(Coming(NOW + DAY, 8),)), DEFAULT)
        is None
    )


@pytest.mark.parametrize(
    "asked",
    [
        ask(3),
        ask(length=15 * DAY),
        ask(environment="production"),
        ask(decided_by_people=True),
    ],
)
def test_time_alone_does_not_mend_what_is_too_large(asked: Ask) -> None:
    known = standing(free_gpus=0, coming=(Coming(NOW + DAY, 24),))
    assert later_automatic(asked, known, DEFAULT) is None


def test_what_must_stay_free_is_waited_for_too() -> None:
    policy = Policy(thresholds=Thresholds(keep_free_gpus=4))
    known = standing(
        free_gpus=4, coming=(Coming(NOW + DAY, 1), Coming(NOW + 2 * DAY, 1))
    )
    assert later_automatic(ask(2), known, policy) == NOW + 2 * DAY


def promised(scene: Scene, gpus: int, *, now: datetime) -> datetime:
    """What an ask for two days is told."""
    wanted = replace(scene.wanted(gpus), until=now + 2 * DAY)
    later = judge(wanted, person=scene.ada, now=now).later
    assert later is not None
    return later


def submitted(scene: Scene, gpus: int, *, now: datetime) -> str:
    """What becomes of it at a moment, in a transaction that is undone."""
    with transaction.atomic():
        for due in Allocation.objects.live().filter(until__lte=now):
            expire(due.pk, now=now)
        state = submit(
            replace(scene.wanted(gpus), until=now + 2 * DAY), by=scene.ada, now=now
        ).state
        transaction.set_rollback(True)
    return state


@pytest.mark.slow
def test_a_window_that_empties_is_kept_as_promised(scene: Scene) -> None:
    for hours in (0, 5, 9):
        scene.ask(2, days=1, now=NOW + timedelta(hours=hours))
    now = NOW + timedelta(hours=10)
    later = promised(scene, 2, now=now)
    assert later == NOW + 7 * DAY + SECOND
    assert [
        submitted(scene, 2, now=later - SECOND),
        submitted(scene, 2, now=later),
    ] == [
        "waiting",
        "approved",
    ]
    assert promised(scene, 1, now=now) == later


def test_gpus_that_come_back_are_counted_from_their_end(scene: Scene) -> None:
    other = factories.team("Speech", by=scene.mallory)
    factories.join(other, scene.mallory)
    place = factories.tenancy(other, scene.flavor.cluster)
    factories.policy(
        Thresholds(
            automatic_gpus=24,
            window_gpus_team=24,
            window_gpus_person=None,
            automatic_gpu_hours=None,
        ),
        now=NOW - DAY,
    )
    for gpus, days in ((12, 2), (11, 3)):
        factories.request(
            scene.mallory, place, scene.flavor, gpus=gpus, days=days, now=NOW
        )
    assert set(Request.objects.values_list("state", flat=True)) == {"approved"}
    assert promised(scene, 1 + 12, now=NOW) == NOW + 2 * DAY
    later = promised(scene, 14, now=NOW)
    assert later == NOW + 3 * DAY
    assert [
        submitted(scene, 14, now=later - SECOND),
        submitted(scene, 14, now=later),
    ] == [
        "waiting",
        "approved",
    ]
