"""What happens around the end of a holding: reminders, grace, and the brake before many ends at once."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, models, transaction

from allocations.ends import reminders as reminding
from allocations.ends import sweep as ending
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Brake, Leftover, StoppedWork
from allocations.schedule import Terms, WhenOver
from audit.models import Event
from fleet.models import Flavor
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.scene import DAY, HOUR, NOW, Scene, books, ledger
from web.refusals import Conflict, NoRight

MINUTE = timedelta(minutes=1)


def held(
    scene: Scene, gpus: int = 1, *, days: float = 3, terms: Terms | None = None
) -> Allocation:
    row = Allocation.objects.get(hold=scene.ask(gpus, days=days).hold_id, ended_at=None)
    if terms is not None:
        row.grace_hours, row.when_over, row.drain_hours = (
            terms.grace_hours,
            terms.when_over,
            terms.drain_hours,
        )
        row.kept_until = terms.kept_until(row.until)
        row.save()
    return row


def reminders() -> list[Notice]:
    return list(Notice.objects.filter(kind="allocation_ending").order_by("id"))


def test_the_team_is_reminded_once_a_day_and_an_hour_before(scene: Scene) -> None:
    row = held(scene)
    assert reminding.due(row.until - DAY - MINUTE) == []
    for at in (
        row.until - DAY,
        row.until - DAY + MINUTE,
        row.until - HOUR,
        row.until - MINUTE,
    ):
        for _ in range(2):
            for pk in reminding.due(at):
                reminding.remind(pk, now=at)
    assert [notice.at for notice in reminders()] == [row.until - DAY, row.until - HOUR]
    said = reminders()[0]
    assert (said.person, said.link) == (scene.ada, f"/allocations/{row.pk}/renew")
    assert said.message["title"] == "1 × A100 of Vision end in 24 h"


def test_an_allocation_that_cannot_be_ended_keeps_no_other_from_ending(
    scene: Scene,
) -> None:
    broken, other = held(scene, 2), held(scene, 1, days=4)
    # A number of the cluster that is wrong: nobody can put back more than is out.
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=1)
    with pytest.raises(ExceptionGroup):
        ending.sweep(NOW + 5 * DAY)
    broken.refresh_from_db()
    other.refresh_from_db()
    assert (broken.ended_at, other.ended_at) == (None, other.kept_until)


def test_a_missed_tick_sends_the_newest_reminder_alone(scene: Scene) -> None:
    row, late = held(scene), NOW + 3 * DAY - MINUTE
    assert reminding.remind(row.pk, now=late)
    assert not reminding.remind(row.pk, now=late)
    assert [notice.at for notice in reminders()] == [late]


def test_two_sweeps_at_once_send_one_reminder(scene: Scene) -> None:
    row, at = held(scene), NOW + 2 * DAY
    seen = row.remind_at
    assert reminding.remind(row.pk, now=at)
    # The other one has read the row before, and comes second.
    assert not Allocation.objects.live().filter(pk=row.pk, remind_at=seen).exists()
    assert len(reminders()) == 1


def test_nobody_is_reminded_of_what_is_over(scene: Scene) -> None:
    row = held(scene)
    assert not reminding.remind(row.pk, now=row.until)
    assert reminding.due(row.until) == []
    other = held(scene)
    give_back(other.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    assert reminding.due(other.until - MINUTE) == []
    assert reminders() == []


def test_the_rest_of_a_part_given_back_is_reminded_of_too(scene: Scene) -> None:
    row = held(scene, 2)
    rest = give_back(row.pk, gpus=1, by=scene.ada, now=NOW + HOUR)
    assert rest is not None
    assert reminding.due(row.until - DAY) == [rest.pk]


def test_grace_is_kept_without_charge_and_ends_by_itself(scene: Scene) -> None:
    row = held(scene, 2, terms=Terms(grace_hours=2))
    assert not expire(row.pk, now=row.until + HOUR)
    assert scene.allocated() == 2
    assert expire(row.pk, now=row.until + 3 * HOUR)
    row.refresh_from_db()
    assert (row.ended_at, row.end_reason, scene.allocated()) == (
        row.until + 2 * HOUR,
        "expired",
        0,
    )
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(144)}
    assert row.usd_in_all == Decimal(144)


def test_in_its_grace_it_can_still_be_given_back(scene: Scene) -> None:
    row = held(scene, 2, terms=Terms(grace_hours=2))
    give_back(row.pk, gpus=None, by=scene.ada, now=row.until + HOUR)
    assert (scene.allocated(), books(scene.team)) == (0, {"2026-11": Decimal(144)})


def test_the_terms_are_those_of_the_day_it_was_granted(scene: Scene) -> None:
    from catalogue.actions import change

    before = held(scene)
    change("gpus", by=scene.priya, grace_hours=3, when_over="stop")
    after = held(scene)
    assert before.terms == Terms(
        grace_hours=0, when_over=WhenOver.DRAIN, drain_hours=24
    )
    assert (after.terms, after.kept_until) == (
        Terms(grace_hours=3, when_over=WhenOver.STOP, drain_hours=24),
        after.until + 3 * HOUR,
    )


def test_the_namespace_keeps_room_until_somebody_has_looked(scene: Scene) -> None:
    row = held(scene, 2)
    give_back(row.pk, gpus=1, by=scene.ada, now=NOW + HOUR)
    quota = next(
        f
        for f in Tenancy.objects.get(pk=scene.tenancy.pk).desired.flavors
        if f.name == "a100"
    )
    assert (quota.gpus, quota.over, quota.room) == (1, 1, 2)
    left = Leftover.objects.get()
    assert (left.gpus, left.stop_at, left.look_at) == (1, NOW + 25 * HOUR, NOW + HOUR)


def many(scene: Scene, count: int, *, days: float = 1) -> list[Allocation]:
    first = held(scene, days=days)
    rows = [first]
    for _ in range(1, count):
        copy = Allocation.objects.get(pk=first.pk)
        copy.pk, copy.hold = None, factories.hold(scene.team)
        copy.save(force_insert=True)
        rows.append(copy)
    type(scene.flavor).objects.filter(pk=scene.flavor.pk).update(allocated=count)
    return rows


@pytest.mark.parametrize(
    ("due", "live", "stops"),
    [(10, 10, False), (11, 11, True), (50, 1000, False), (51, 1000, True)],
)
def test_more_than_ten_and_five_percent_are_too_many(
    due: int, live: int, stops: bool
) -> None:
    assert ending.too_many(due, live) is stops


def test_ten_end_by_themselves(scene: Scene) -> None:
    many(scene, 10)
    assert ending.sweep(NOW + 2 * DAY) == 10
    assert not Brake.objects.exists()


def test_a_clock_that_jumps_ends_nothing_and_leads_are_told_once(scene: Scene) -> None:
    many(scene, 11)
    jumped = NOW + 2 * DAY
    assert [ending.sweep(jumped + n * MINUTE) for n in range(3)] == [0, 0, 0]
    brake = Brake.objects.get()
    assert (brake.due, brake.live, brake.clock, brake.answer) == (11, 11, jumped, "")
    told = Notice.objects.filter(kind="ends_held_back")
    assert {notice.person for notice in told} == {scene.priya, scene.marcus}
    assert (len(told), scene.allocated()) == (2, 11)
    assert ending.sweep(NOW) == 0


def test_only_a_platform_lead_lets_them_end_and_once(scene: Scene) -> None:
    many(scene, 11)
    late = NOW + 2 * DAY
    ending.sweep(late)
    brake = Brake.objects.get()
    for person in (scene.ada, scene.elena):
        with pytest.raises(NoRight), transaction.atomic():
            ending.confirm(brake.pk, by=person, now=late)
    ending.confirm(brake.pk, by=scene.priya, now=late)
    with pytest.raises(Conflict), transaction.atomic():
        ending.dismiss(brake.pk, by=scene.marcus, now=late)
    assert ending.sweep(late + MINUTE) == 11
    assert scene.allocated() == 0
    assert Event.objects.filter(kind="expiry.confirmed").count() == 1


@pytest.mark.slow
def test_what_was_confirmed_lets_nothing_else_end(scene: Scene) -> None:
    rows = many(scene, 22)
    Allocation.objects.filter(pk__in=[row.pk for row in rows[:11]]).update(
        until=NOW + 3 * DAY, kept_until=NOW + 3 * DAY
    )
    ending.sweep(NOW + 2 * DAY)
    ending.confirm(Brake.objects.get().pk, by=scene.priya, now=NOW + 2 * DAY)
    assert ending.sweep(NOW + 4 * DAY) == 11
    assert Brake.objects.open().count() == 1
    assert Allocation.objects.live().count() == 11


def test_a_clock_that_was_wrong_is_said_so_and_holds_again(scene: Scene) -> None:
    many(scene, 11)
    ending.sweep(NOW + 2 * DAY)
    ending.dismiss(Brake.objects.get().pk, by=scene.priya, now=NOW)
    assert ending.sweep(NOW) == 0
    assert ending.sweep(NOW + 2 * DAY) == 0
    assert list(Brake.objects.values_list("answer", flat=True)) == ["", "dismissed"]


def test_a_brake_is_off_once_its_moment_has_come_and_little_is_due(
    scene: Scene,
) -> None:
    rows = many(scene, 11)
    ending.sweep(NOW + 2 * DAY)
    give_back(rows[0].pk, gpus=None, by=scene.ada, now=NOW)
    assert ending.sweep(NOW) == 0
    assert Brake.objects.open().exists()
    assert ending.sweep(NOW + 2 * DAY) == 10
    assert Brake.objects.get().answer == "passed"


def refused(rows: models.QuerySet[models.Model], **fields: object) -> bool:
    try:
        with transaction.atomic():
            rows.update(**fields)
    except IntegrityError:
        return True
    return False


def test_the_database_refuses_what_must_never_be(scene: Scene) -> None:
    row = held(scene)
    rows = Allocation.objects.filter(pk=row.pk)
    assert refused(rows, kept_until=row.until - MINUTE)
    assert refused(rows, when_over="never")
    assert refused(rows, remind_at=row.until)
    give_back(row.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    left = Leftover.objects.all()
    assert refused(left, gpus=0)
    assert refused(left, stop_at=NOW)
    work = {
        "leftover": left.get(),
        "tenancy": scene.tenancy,
        "uid": "u",
        "name": "w",
        "job": "Job w",
        "gpus": 1,
    }
    stopped = StoppedWork.objects.create(**work, asked_at=NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        StoppedWork.objects.create(**work, asked_at=NOW)
    assert refused(StoppedWork.objects.filter(pk=stopped.pk), done_at=NOW - MINUTE)
    brake = Brake.objects.create(clock=NOW, due=11, live=11)
    with pytest.raises(IntegrityError), transaction.atomic():
        Brake.objects.create(clock=NOW, due=11, live=11)
    assert refused(Brake.objects.filter(pk=brake.pk), answer="confirmed")
    assert refused(Brake.objects.filter(pk=brake.pk), answer="maybe", answered_at=NOW)
