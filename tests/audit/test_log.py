"""Events are written with what they tell of, in line, and without a gap."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from allocations.ends.actions import give_back
from allocations.models import Allocation
from approvals.decisions.actions import approve
from audit.actors import PORTAL, Actor
from audit.chain import verify
from audit.events import Kind
from audit.log import record, refuse, together
from audit.models import Event, Head, links
from tests import factories
from tests.scene import DAY, NOW, Scene, scene

ADA = Actor("person", "00000000-0000-4000-8000-000000000001", "Ada Okafor")


@pytest.mark.django_db
def test_an_event_holds_who_did_what_to_what() -> None:
    event = record(
        Kind.TEAM_CREATED,
        actor=ADA,
        subject=("team", 5),
        team_id=5,
        name="Vision",
        nothing=None,
    )
    stored = Event.objects.get(seq=event.seq)
    assert stored.body() == event.body()
    assert stored.details == {"name": "Vision"}
    assert (stored.actor_name, stored.words) == ("Ada Okafor", "created the team")
    assert (Head.objects.get().seq, Head.objects.get().hash) == (event.seq, event.hash)
    assert verify(links()).broken_at is None


@pytest.mark.django_db
def test_long_and_strange_details_are_kept_as_short_json() -> None:
    event = record(
        Kind.REFUSED,
        actor=Actor("person", "", "x" * 500),
        text="y" * 5000,
        many=list(range(100)),
        when=NOW.date(),
        deep={"a": {"b": DAY}},
        flag=True,
    )
    stored = Event.objects.get(seq=event.seq)
    assert len(stored.actor_name) == 200
    assert stored.details == {
        "text": "y" * 1000 + "…",
        "many": list(range(50)),
        "when": "2026-11-20",
        "deep": {"a": {"b": "1 day, 0:00:00"}},
        "flag": True,
    }
    assert verify(links()).broken_at is None


@pytest.mark.django_db(transaction=True)
def test_an_event_needs_the_transaction_it_tells_of() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        record(Kind.REFUSED, actor=PORTAL)
    assert not Event.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_leaves_no_event_and_no_gap() -> None:
    refuse(actor=PORTAL, reason="one", where="here")
    with transaction.atomic():
        record(Kind.REFUSED, actor=PORTAL)
        transaction.set_rollback(True)
    refuse(actor=PORTAL, reason="two", where="here")
    assert list(Event.objects.order_by("seq").values_list("seq", "details")) == [
        (1, {"reason": "one", "where": "here"}),
        (2, {"reason": "two", "where": "here"}),
    ]
    assert verify(links()).checked == 2


@pytest.mark.django_db(transaction=True)
def test_what_is_recorded_together_is_one_piece_of_the_chain_in_its_order() -> None:
    refuse(actor=PORTAL, reason="before", where="here")
    with transaction.atomic(), CaptureQueriesContext(connection) as seen:
        with together():
            first = record(Kind.REFUSED, actor=PORTAL, reason="one")
            with together():
                record(Kind.REFUSED, actor=ADA, reason="two")
            record(Kind.REFUSED, actor=PORTAL, reason="three")
            assert len(seen) == 0
        assert len(seen) == 3
    refuse(actor=PORTAL, reason="after", where="here")
    said = [
        details["reason"]
        for details in Event.objects.order_by("seq").values_list("details", flat=True)
    ]
    assert said == ["before", "one", "two", "three", "after"]
    assert (first.seq, Event.objects.get(seq=2).hash) == (2, first.hash)
    assert verify(links()).reason == "5 events, unbroken."


@pytest.mark.django_db(transaction=True)
def test_what_was_rolled_back_within_is_not_appended() -> None:
    with transaction.atomic(), together():
        record(Kind.REFUSED, actor=PORTAL, reason="one")
        with suppress(ValueError), transaction.atomic():
            record(Kind.REFUSED, actor=PORTAL, reason="undone")
            with transaction.atomic():
                record(Kind.REFUSED, actor=PORTAL, reason="undone with it")
            raise ValueError
        with transaction.atomic():
            record(Kind.REFUSED, actor=PORTAL, reason="two")
    assert list(
        Event.objects.order_by("seq").values_list("details__reason", flat=True)
    ) == ["one", "two"]
    assert verify(links()).reason == "2 events, unbroken."


@pytest.mark.django_db
def test_of_a_block_that_raises_nothing_is_appended_then_or_later() -> None:
    with suppress(ValueError), together():
        record(Kind.REFUSED, actor=PORTAL, reason="undone")
        raise ValueError
    with together():
        pass
    record(Kind.REFUSED, actor=PORTAL, reason="one")
    assert list(Event.objects.values_list("details__reason", flat=True)) == ["one"]


@pytest.mark.django_db(transaction=True)
def test_recording_together_needs_a_transaction() -> None:
    with pytest.raises(transaction.TransactionManagementError), together():
        pass


def at_once(number: int, work: Callable[[int], Any]) -> list[BaseException]:
    """Run something in as many threads as there are numbers; what they raised."""
    failed: list[BaseException] = []
    together = threading.Barrier(number)

    def run(which: int) -> None:
        together.wait(20)
        try:
            work(which)
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(which,)) for which in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return failed


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_sixteen_writers_at_once_leave_no_gap() -> None:
    def write(which: int) -> None:
        for turn in range(10):
            with transaction.atomic():
                record(Kind.REFUSED, actor=PORTAL, writer=which, turn=turn)
                transaction.set_rollback(turn % 3 == 2)

    assert at_once(16, write) == []
    assert verify(links()).reason == "112 events, unbroken."
    assert list(Event.objects.order_by("seq").values_list("seq", flat=True)) == list(
        range(1, 113)
    )


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_asking_giving_back_and_deciding_at_once_lock_in_one_order() -> None:
    story = scene()
    held = [story.ask(1).pk and Allocation.objects.latest("id").pk for _ in range(4)]
    waiting = [story.ask(3).pk for _ in range(4)]
    later = NOW + DAY

    def work(which: int) -> None:
        if which < 4:
            give_back(held[which], gpus=None, by=story.ada, now=later)
        elif which < 8:
            approve(waiting[which - 4], by=story.priya, expected_version=1, now=later)
        else:
            another(story, which)

    assert at_once(12, work) == []
    assert verify(links()).broken_at is None
    live = Allocation.objects.live()
    assert story.allocated() == sum(row.gpus for row in live)


def another(story: Scene, which: int) -> None:
    """Somebody of the team asks for two more."""
    factories.request(
        story.ada, story.tenancy, story.flavor, gpus=2, days=which, now=NOW
    )
