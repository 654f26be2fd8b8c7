"""Runs that wait for another one while that ends: none is left waiting, and none is sent twice."""

from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from audit.models import Event
from provisioning.models import Tenancy
from tests import factories
from tests.concurrency.together import held_up, together
from web.refusals import BadValues, Conflict
from workloads.models import Run
from workloads.runs import actions, ending, sending
from workloads.runs.planning.plan import Submission
from workloads.runs.states import State

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5


@pytest.fixture
def ada(transactional_db: None) -> User:
    return factories.person("Ada Okafor", teams=[factories.team("Vision")])


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    cluster = factories.cluster("training")
    return factories.make_true(factories.tenancy(ada.teams[0], cluster))


def submit(tenancy: Tenancy, ada: User, after: Run, key: str) -> Run:
    asked = Submission(
        template="single-node",
        title="Evaluate",
        values={
            "image": "registry.example.com/vision/train:1",
            "program": ("evaluate.py",),
        },
        after=after.pk,
    )
    return actions.submit(tenancy.pk, asked, by=ada, key=key, now=timezone.now())


def end(run: Run, state: State) -> None:
    assert ending.end(run.pk, state, now=timezone.now())


def stop(run: Run, ada: User) -> None:
    try:
        actions.stop(run.pk, by=ada, now=timezone.now())
    except Conflict as refused:
        assert refused.code == "run_is_over"  # noqa: PT017 - either may come first


def test_what_is_submitted_while_the_other_one_finishes_is_sent(
    tenancy: Tenancy, ada: User
) -> None:
    for number in range(ROUNDS):
        first = factories.run(tenancy, ada)
        together(
            partial(submit, tenancy, ada, first, f"round-{number}"),
            partial(end, first, State.FINISHED),
        )
        assert Run.objects.get(after=first).state == "submitted"


def test_it_waits_for_the_end_that_is_written_down_and_is_sent_at_once(
    tenancy: Tenancy, ada: User
) -> None:
    first = factories.run(tenancy, ada)
    run = held_up(
        partial(submit, tenancy, ada, first, "one"),
        by=partial(end, first, State.FINISHED),
    )
    assert run.state == "submitted"


def test_it_is_refused_where_the_end_that_is_written_down_is_a_failure(
    tenancy: Tenancy, ada: User
) -> None:
    first = factories.run(tenancy, ada)
    with pytest.raises(BadValues, match="did not finish: failed"):
        held_up(
            partial(submit, tenancy, ada, first, "one"),
            by=partial(end, first, State.FAILED),
        )
    assert not Run.objects.filter(after=first).exists()


def test_the_end_waits_for_a_submission_and_sends_what_that_kept(
    tenancy: Tenancy, ada: User
) -> None:
    first = factories.run(tenancy, ada)
    held_up(
        partial(end, first, State.FINISHED),
        by=partial(submit, tenancy, ada, first, "one"),
    )
    assert Run.objects.get(after=first).state == "submitted"


@pytest.mark.slow
@pytest.mark.parametrize("state", [State.FINISHED, State.FAILED])
def test_a_chain_that_is_stopped_in_the_middle_while_its_first_ends_is_none_left_waiting(
    tenancy: Tenancy, ada: User, state: State
) -> None:
    for _ in range(ROUNDS):
        first = factories.run(tenancy, ada)
        second = factories.run(tenancy, ada, state="blocked", after=first)
        third = factories.run(tenancy, ada, state="blocked", after=second)
        beside = factories.run(tenancy, ada, state="blocked", after=first)
        together(
            partial(end, first, state),
            partial(stop, second, ada),
            partial(stop, third, ada),
            partial(stop, beside, ada),
        )
        for one in (second, third, beside):
            one.refresh_from_db()
        # One that was released before its stop has a worker take it away, and what follows waits for that.
        if second.is_over:
            assert third.is_over
        else:
            assert (second.state, second.stop_asked_at is None) == ("submitted", False)
        ends = Event.objects.filter(kind="run.ended", subject_id=str(third.pk))
        assert ends.count() == int(third.is_over)


def test_two_workers_that_see_one_end_send_what_follows_once(
    tenancy: Tenancy, ada: User
) -> None:
    first = factories.run(tenancy, ada)
    run = factories.run(tenancy, ada, state="blocked", after=first)
    told: list[bool] = []

    def see() -> None:
        told.append(ending.end(first.pk, State.FINISHED, now=timezone.now()))

    together(see, see)
    assert sorted(told) == [False, True]
    leases: list[object] = []

    def take() -> None:
        found = sending.CONTROLLER.acquire(run.pk, now=timezone.now(), only_due=True)
        leases.append(found)
        connection.close()

    together(take, take)
    assert len([one for one in leases if one is not None]) == 1
