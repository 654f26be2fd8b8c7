"""What may be done about a team's leaving, by whom, and what the database refuses: no cluster is needed."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.models import Team, User
from allocations.actions import grant
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.places import has_left
from approvals.requests.wanted import resolve
from audit.actors import PORTAL
from fleet.models import Flavor
from notices.models import Notice
from offboarding import actions
from offboarding import preview as previews
from offboarding.models import Departure, DeparturePlace
from offboarding.preview import Leaving, preview, seen
from offboarding.sweep import advance, delete_due, sweep
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.onboarding.parting import DAY, Parting, on_paper
from tests.scene import NOW, REASON, Scene
from web.refusals import BadInput, Conflict, NoRight, Stale


@pytest.fixture
def vision(scene: Scene) -> Parting:
    """The team on a cluster that nobody looks at."""
    return on_paper(scene)


def told(user: User) -> list[str]:
    rows = Notice.objects.filter(person=user, kind="team_leaves").order_by("pk")
    return [row.message["title"] for row in rows]


def test_nothing_new_is_issued_where_a_team_leaves(vision: Parting) -> None:
    vision.go(leaves_at=vision.place.time + DAY)
    until = vision.place.time + DAY
    granted = factories.granted(
        vision.ada, vision.tenancy, vision.place.a100, until=until
    )
    with pytest.raises(Conflict, match="nothing new is granted"):
        grant(granted, actor=PORTAL, now=vision.place.time)


def test_before_its_date_nothing_is_drained_and_nothing_deleted(
    vision: Parting,
) -> None:
    departure = vision.go(leaves_at=vision.place.time + DAY)
    advance(departure.pk, now=vision.place.time)
    assert vision.tenancy.stage == Stage.LEAVING
    vision.place.later(days=1)
    advance(departure.pk, now=vision.place.time)
    assert vision.tenancy.stage == Stage.RETAINED
    vision.stopped()
    vision.place.later(days=29)
    assert (
        leaving.remove(vision.place.tenancy.pk, actor=PORTAL, now=vision.place.time)
        is False
    )
    delete_due(now=vision.place.time)
    assert vision.tenancy.stage == Stage.RETAINED
    vision.place.later(days=1)
    delete_due(now=vision.place.time)
    assert vision.tenancy.stage == Stage.REMOVING


def test_a_departure_that_cannot_go_on_keeps_no_other_from_going_on(
    vision: Parting,
) -> None:
    held = factories.allocation(vision.ada, vision.tenancy, vision.place.a100, gpus=2)
    stuck = vision.go()
    place = factories.tenancy(factories.team("Speech"), vision.place.cluster)
    speech = replace(vision, place=replace(vision.place, tenancy=place))
    asked = speech.ask(by=speech.priya)
    speech.unprotect()
    assert speech.confirm(asked, by=speech.marcus, name="Speech").pk > stuck.pk
    # A number of the cluster that is wrong: nobody can put back more than is out.
    Flavor.objects.filter(pk=vision.place.a100.pk).update(allocated=1)
    with pytest.raises(ExceptionGroup):
        sweep(now=vision.place.time)
    held.refresh_from_db()
    assert held.ended_at is None
    assert speech.tenancy.stage == Stage.RETAINED


def test_a_clock_that_is_wrong_drains_nothing(vision: Parting) -> None:
    now = vision.place.time
    vision.go(leaves_at=now + DAY)
    early = leaving.drain(
        vision.place.tenancy.pk, retained_until=now + 9 * DAY, actor=PORTAL, now=now
    )
    assert (early, vision.tenancy.stage) == (False, Stage.LEAVING)


def test_only_platform_leads_take_the_protection_off(vision: Parting) -> None:
    for stranger in (vision.ada, vision.mallory):
        with pytest.raises(NoRight):
            leaving.protect(vision.place.tenancy.pk, on=False, by=stranger)
    with pytest.raises(Conflict, match="is protected"):
        leaving.announce(
            vision.place.tenancy.pk,
            leaves_at=vision.place.time,
            hold=False,
            actor=PORTAL,
            now=vision.place.time,
        )
    assert vision.tenancy.is_protected


def test_who_may_ask_confirm_and_restore(vision: Parting) -> None:
    team, wish, now = vision.tenancy.team, vision.wish(), vision.place.time
    member = factories.person("Noor", teams=[team])
    for stranger in (member, vision.mallory):
        with pytest.raises(NoRight):
            actions.ask(team, wish, by=stranger, now=now)
    departure = vision.ask()
    vision.unprotect()
    for other in (vision.ada, member, vision.mallory):
        with pytest.raises(NoRight):
            vision.confirm(departure, by=other)
    vision.confirm(departure)
    for stranger in (member, vision.mallory):
        with pytest.raises(NoRight):
            actions.restore(departure.pk, by=stranger, now=now)
    assert actions.restore(departure.pk, by=vision.ada, now=now).end == "restored"


def test_a_platform_lead_asks_and_confirms_alone_where_there_is_no_production(
    vision: Parting,
) -> None:
    departure = vision.ask(by=vision.priya)
    vision.unprotect()
    assert vision.confirm(departure, by=vision.priya).confirmed_by == vision.priya


def test_for_production_another_platform_lead_confirms(vision: Parting) -> None:
    Tenancy.objects.filter(pk=vision.place.tenancy.pk).update(environment="production")
    departure = vision.ask(by=vision.priya)
    vision.unprotect()
    with pytest.raises(NoRight, match="another platform lead"):
        vision.confirm(departure, by=vision.priya)
    fields = {"confirmed_by": vision.priya, "confirmed_at": vision.place.time}
    with (
        pytest.raises(IntegrityError, match="a_second_person_confirms_for_production"),
        transaction.atomic(),
    ):
        Departure.objects.filter(pk=departure.pk).update(**fields)
    assert vision.confirm(departure, by=vision.marcus).confirmed_by == vision.marcus


def test_what_is_protected_is_not_confirmed(vision: Parting) -> None:
    departure = vision.ask()
    with pytest.raises(Conflict, match="Protected from deletion: Training"):
        vision.confirm(departure)
    assert vision.tenancy.stage == Stage.HERE


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["", "vision", "Visio", "Speech", "VISION"])
def test_the_name_is_typed_as_it_is_written(vision: Parting, typed: str) -> None:
    departure = vision.ask()
    vision.unprotect()
    with pytest.raises(BadInput, match="Type the team’s name"):
        vision.confirm(departure, name=typed)


def test_a_preview_that_has_changed_is_not_confirmed(vision: Parting) -> None:
    departure = vision.ask()
    vision.unprotect()
    before = seen(departure)
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, now=vision.place.time
    )
    with pytest.raises(Stale, match="has changed since you looked"):
        vision.confirm(departure, seen_content=before)
    vision.confirm(departure)


def test_taken_back_before_it_is_confirmed_nothing_has_changed(vision: Parting) -> None:
    departure = vision.ask()
    with pytest.raises(NoRight):
        actions.withdraw(departure.pk, by=vision.mallory, now=vision.place.time)
    assert (
        actions.withdraw(departure.pk, by=vision.ada, now=vision.place.time).end
        == "withdrawn"
    )
    with pytest.raises(Conflict):
        actions.withdraw(departure.pk, by=vision.ada, now=vision.place.time)
    vision.unprotect()
    with pytest.raises(Conflict, match="over already"):
        vision.confirm(departure)
    assert vision.ask().pk != departure.pk


def test_a_place_is_left_once_at_a_time(vision: Parting) -> None:
    departure = vision.ask()
    with pytest.raises(Conflict, match="Somebody has asked"):
        vision.ask(by=vision.priya)
    fields = {"departure": departure, "tenancy": vision.tenancy}
    with (
        pytest.raises(IntegrityError, match="a_place_is_left_once_at_a_time"),
        transaction.atomic(),
    ):
        DeparturePlace.objects.create(**fields)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reason": "Over."}, "reason"),
        ({"retention_days": 0}, "retention_days"),
        ({"retention_days": 366}, "retention_days"),
        ({"tenancies": []}, "cluster"),
        ({"tenancies": [999_999]}, "cluster"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(
    vision: Parting, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        vision.ask(**changes)
    assert refused.value.field == field
    with pytest.raises(BadInput, match="at most 400 days"):
        vision.ask(leaves_at=vision.place.time + timedelta(days=401))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("a_confirmed_departure_has_a_confirmer", {"confirmed_by": None}),
        ("what_a_team_leaves_is_kept_1_to_365_days", {"retention_days": 366}),
        ("a_departure_ends_as_it_went", {"end": "gone"}),
        (
            "a_departure_ends_as_it_went",
            {"end": "withdrawn", "ended_at": "2026-11-21T12:00Z"},
        ),
    ],
)
def test_the_database_refuses_a_departure_that_cannot_be(
    vision: Parting, name: str, fields: dict[str, Any]
) -> None:
    departure = vision.go()
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Departure.objects.filter(pk=departure.pk).update(**fields)


def test_a_team_that_has_left_asks_for_nothing_but_a_place(vision: Parting) -> None:
    team = vision.tenancy.team
    assert not has_left(team)
    vision.go(is_whole=True)
    assert has_left(team)


@pytest.mark.parametrize(("days", "usd"), [(0, "96.00"), (8, "48.00"), (9, "0")])
def test_the_preview_frees_of_a_booking_what_it_costs_from_when_it_begins(
    scene: Scene, days: int, usd: str
) -> None:
    starts = NOW + 7 * DAY
    spec = {"flavor": "training/a100", "gpus": 2, "purpose": "training"}
    booking = resolve(
        "gpus",
        spec,
        team=scene.team,
        until=starts + 2 * DAY,
        starts=starts,
        reason=REASON,
    )
    asked = submit(booking, by=scene.ada, now=NOW)
    assert (asked.state, asked.usd) == ("approved", Decimal("96.00"))
    wish = Leaving(scene.team, [scene.tenancy], True, NOW + days * DAY)
    assert preview(wish, {}, now=NOW).usd_freed == Decimal(usd)


def test_who_leaves_the_platform_leaves_where_it_came_after_asking(
    vision: Parting,
) -> None:
    departure = vision.ask(is_whole=True)
    vision.unprotect()
    before = seen(departure)
    came = factories.tenancy(vision.tenancy.team, factories.cluster("elsewhere"))
    assert came in previews.of(departure).tenancies
    with pytest.raises(Stale, match="has changed since you looked"):
        vision.confirm(departure, seen_content=before)
    with pytest.raises(Conflict, match="Protected from deletion"):
        vision.confirm(departure)
    assert set(departure.places.values_list("tenancy", flat=True)) == {
        vision.tenancy.pk
    }
    leaving.protect(came.pk, on=False, by=vision.priya)
    vision.confirm(departure)
    came.refresh_from_db()
    assert (came.stage, vision.tenancy.stage) == (Stage.LEAVING, Stage.LEAVING)
    assert departure.places.count() == 2


def test_who_leaves_one_cluster_stays_where_it_came_after_asking(
    vision: Parting,
) -> None:
    departure = vision.ask()
    vision.unprotect()
    came = factories.tenancy(vision.tenancy.team, factories.cluster("elsewhere"))
    vision.confirm(departure)
    came.refresh_from_db()
    assert came.is_here


def test_production_that_came_after_asking_takes_another_platform_lead(
    vision: Parting,
) -> None:
    departure = vision.ask(by=vision.priya, is_whole=True)
    vision.unprotect()
    came = factories.tenancy(
        vision.tenancy.team, factories.cluster("elsewhere"), environment="production"
    )
    leaving.protect(came.pk, on=False, by=vision.priya)
    with pytest.raises(NoRight, match="another platform lead"):
        vision.confirm(departure, by=vision.priya)
    assert vision.confirm(departure, by=vision.marcus).needs_second


def test_a_place_that_is_asked_to_be_left_by_itself_is_not_left_twice(
    vision: Parting,
) -> None:
    departure = vision.ask(is_whole=True)
    vision.unprotect()
    came = factories.tenancy(vision.tenancy.team, factories.cluster("elsewhere"))
    vision.ask(tenancies=[came.pk])
    with pytest.raises(Conflict, match="Take that back first"):
        vision.confirm(departure)
    assert vision.tenancy.is_here


def test_members_are_told_and_platform_leads_are_asked(vision: Parting) -> None:
    departure = vision.ask()
    assert told(vision.priya) == ["Vision asks to leave Training"]
    asked = Notice.objects.get(person=vision.priya, kind="team_leaves")
    assert asked.message["facts"] == [
        ["Work stops", "as soon as it is confirmed"],
        ["Deleted for good", "30 days after that"],
    ]
    vision.unprotect()
    vision.confirm(departure)
    assert told(vision.ada)[-1].startswith("Vision leaves Training on")


def test_another_lead_of_the_team_is_told_in_time_to_take_it_back(
    vision: Parting,
) -> None:
    chloe = factories.person("Chloe")
    factories.join(vision.tenancy.team, chloe, lead=True)
    ben = factories.person("Ben", teams=[vision.tenancy.team])
    departure = vision.ask(by=vision.ada)
    assert told(chloe) == ["Vision asks to leave Training"]
    assert (told(vision.ada), told(ben)) == ([], []), "she knows, he cannot object"
    actions.withdraw(departure.pk, by=chloe, now=vision.place.time)
    stays = "Vision stays: leaving Training was taken back"
    assert told(vision.ada) == [stays], "who asked is told that it was taken back"
    assert told(vision.priya)[-1] == stays, "nobody waits for her any more"
    assert (told(chloe)[-1], told(ben)) == ("Vision asks to leave Training", [])


def test_what_was_drained_late_is_kept_as_long_after_that(scene: Scene) -> None:
    vision = on_paper(scene)
    departure = vision.go(retention_days=1)
    # No worker works for two days; it drains the place, and the cluster takes it.
    vision.place.later(days=2)
    sweep(now=vision.place.time)
    vision.stopped()
    vision.place.later(hours=23)
    sweep(now=vision.place.time)
    assert vision.tenancy.stage == Stage.RETAINED
    departure.refresh_from_db()
    assert departure.retained_until == vision.place.time + timedelta(hours=1)
    vision.place.later(hours=1)
    sweep(now=vision.place.time)
    assert vision.tenancy.stage == Stage.REMOVING


def test_nothing_is_deleted_where_work_has_not_stopped(scene: Scene) -> None:
    vision = on_paper(scene)
    vision.go(retention_days=1)
    sweep(now=vision.place.time)
    # The cluster does not answer, so nobody has stopped anything there.
    vision.place.later(days=3)
    sweep(now=vision.place.time)
    place = vision.place
    assert leaving.remove(place.tenancy.pk, actor=PORTAL, now=place.time) is False
    assert vision.tenancy.stage == Stage.RETAINED


def test_a_team_that_leaves_the_platform_gets_nothing_new_elsewhere(
    scene: Scene,
) -> None:
    factories.cluster("elsewhere")
    vision = on_paper(scene)
    later = vision.place.time + 2 * DAY
    departure = vision.ask(is_whole=True, tenancies=[], leaves_at=later)
    vision.unprotect()
    vision.confirm(departure)
    with pytest.raises(Conflict) as refused:
        vision_asks_for_a_namespace(vision)
    assert refused.value.code == "is_leaving"
    actions.restore(departure.pk, by=vision.ada, now=vision.place.time)
    assert vision_asks_for_a_namespace(vision).tenancy is not None


def vision_asks_for_a_namespace(vision: Parting) -> Request:
    """One of dev on the other cluster, which the policy gives at once."""
    team = Team.objects.get(pk=vision.tenancy.team_id)
    spec = {"cluster": "elsewhere", "environment": "dev", "project": "main"}
    until = vision.place.time + 5 * DAY
    wanted = resolve("namespace", spec, team=team, until=until, reason=REASON)
    return submit(wanted, by=vision.ada, now=vision.place.time)
