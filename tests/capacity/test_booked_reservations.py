"""Machines that are reserved from a later day on count against the quota of their own days."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from allocations.bookings import actions as bookings
from allocations.bookings.levels import Level, lowest
from allocations.bookings.promised import levels_of
from allocations.models import Allocation
from approvals.models import Request
from approvals.requests.actions import Judged, judge, submit
from approvals.requests.wanted import Wanted, resolve
from approvals.states import State
from capacity.chain.sharing import machines_left
from capacity.models import FamilyQuota, NodePool, Reservation
from capacity.reservations.asking import quota_left
from capacity.subscriptions.following import as_shared
from fleet.models import Flavor
from notices.models import Notice
from policy.evaluation import Rule
from tests import factories
from tests.approvals import shop
from tests.calling import Caller
from tests.capacity.shared import grant, kind, read_again
from tests.insights.fleet import (
    AKS,
    FAMILY,
    SIZE,
    SUBSCRIPTION,
    VCPUS,
    Site,
    connect,
    pool,
    site,
)
from tests.scene import DAY, HOUR, NOW, REASON, scene
from web.refusals import Conflict

pytestmark = pytest.mark.django_db
NEXT_WEEK = NOW + 7 * DAY
OTHER = "55555555-5555-4555-8555-555555555555"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Site:
    """A subscription whose quota has room for four machines more."""
    connect(monkeypatch)
    made = site(scene(), read_at=NOW)
    allow(made, 4)
    return made


def allow(here: Site, machines: int) -> None:
    """Have Azure allow so many machines beside the two that run."""
    here.quota(limit=2 + machines)


def wanted(
    here: Site,
    machines: int,
    *,
    starts: datetime | None = NEXT_WEEK,
    days: float = 2,
    nodes_for: str = "",
) -> Wanted:
    """An ask for machines from a moment on, for so many days."""
    spec = {
        **shop.SPECS["reservation"],
        "vm_size": SIZE,
        "instances": machines,
        "nodes_for": nodes_for,
    }
    until = (starts or NOW) + timedelta(days=days)
    return resolve(
        "reservation",
        spec,
        team=here.scene.team,
        until=until,
        starts=starts,
        reason=REASON,
    )


def judged(here: Site, machines: int, **asked: Any) -> Judged:
    """What the policy says to such an ask."""
    return judge(wanted(here, machines, **asked), person=here.scene.ada, now=NOW)


def quota(of: Judged) -> Rule:
    """What it says of the quota."""
    [rule] = [one for one in of.answer.rules if one.code == "quota"]
    return rule


def granted(here: Site, machines: int, **asks: Any) -> Allocation:
    """Machines that people have approved, whatever the quota has."""
    asked = submit(wanted(here, machines, **asks), by=here.scene.ada, now=NOW)
    shop.approve(asked, by=(here.scene.priya, here.scene.elena), now=NOW)
    return Allocation.objects.get(hold=asked.hold)


def made(row: Allocation, *, used: int) -> None:
    """Have Azure have made a reservation, and count so many machines in all."""
    Reservation.objects.filter(allocations=row).update(
        held=row.count, state="reserved", reserved_at=NOW, observed_generation=1
    )
    FamilyQuota.objects.update(used=used * VCPUS)


def test_a_booking_takes_the_quota_of_its_own_days_alone(here: Site) -> None:
    granted(here, 3)
    assert quota(judged(here, 1)).value == 1
    # Before it begins, and once it has ended, all of it is there.
    assert quota(judged(here, 4, starts=None, days=6)).holds
    assert quota(judged(here, 4, starts=NEXT_WEEK + 2 * DAY)).holds
    over = quota(judged(here, 2, starts=None, days=8))
    assert (over.holds, over.text) == (
        False,
        f"1 more fit the subscription quota of {FAMILY} in all of its time",
    )


@pytest.mark.slow
def test_two_bookings_of_the_same_days_are_not_both_promised_the_last_machines(
    here: Site,
) -> None:
    granted(here, 3)
    second = judged(here, 3)
    assert not quota(second).holds
    assert second.fits_from == NEXT_WEEK + 2 * DAY
    assert quota(judged(here, 3, starts=second.fits_from)).holds


def test_a_booking_finds_free_what_ends_before_it(here: Site) -> None:
    row = granted(here, 4, starts=None, days=3)
    made(row, used=6)
    assert not quota(judged(here, 1, starts=NOW + 2 * DAY)).holds
    full = judged(here, 4, starts=NOW + 2 * DAY)
    assert full.fits_from is not None
    assert NOW + 3 * DAY <= full.fits_from < NOW + 4 * DAY
    assert quota(judged(here, 4)).holds


def test_what_is_approved_and_not_made_yet_counts_at_once_and_once(here: Site) -> None:
    row = granted(here, 3, starts=None, days=9)
    assert quota(judged(here, 1)).value == 1
    made(row, used=5)
    assert quota(judged(here, 1)).value == 1
    # More of the same is asked for: two machines are to come.
    Reservation.objects.filter(allocations=row).update(machines=5)
    assert quota(judged(here, 1)).value == 0


def test_gpus_that_need_more_nodes_leave_less_to_reserve_as_long_as_they_are_held(
    here: Site,
) -> None:
    # Eight stand; four more take a machine.
    grant(here, here.scene.tenancy, here.flavor, 12, days=3)
    assert quota(judged(here, 1, starts=None)).value == 3
    assert quota(judged(here, 1)).value == 4


@pytest.mark.slow
def test_a_booked_reservation_leaves_fewer_gpus_on_its_days(here: Site) -> None:
    read_again(here.cluster)
    granted(here, 3)
    spec = {"flavor": here.flavor.key, "gpus": 16, "purpose": "training"}
    for days, free in ((6, 8 + 16), (8, 8 + 4)):
        ask = resolve(
            "gpus", spec, team=here.scene.team, until=NOW + days * DAY, reason=REASON
        )
        assert judge(ask, person=here.scene.ada, now=NOW).standing.free_gpus == free
    with pytest.raises(Conflict, match="in all of that time"), transaction.atomic():
        grant(here, here.scene.tenancy, here.flavor, 16, days=8)
    grant(here, here.scene.tenancy, here.flavor, 16, days=6)


@pytest.mark.slow
def test_nodes_of_a_reservation_take_quota_anew_for_gpus_that_are_held_beyond_its_end(
    here: Site,
) -> None:
    read_again(here.cluster)
    nodes = {"nodes_for": here.flavor.key}
    row = granted(here, 2, starts=None, days=3)
    Allocation.objects.filter(pk=row.pk).update(spec={**row.spec, **nodes})
    made(row, used=4)
    # One of four machines that are allowed is left for others, and two are the reservation's.
    allow(here, 3)
    NodePool.objects.create(
        cluster=here.cluster,
        name="qm1",
        vm_size=SIZE,
        nodes=0,
        min_nodes=0,
        max_nodes=2,
        labels=here.flavor.node_labels,
        reserved=2,
        reserved_used=0,
        seen_at=NOW,
    )
    read_again(here.cluster)
    grant(here, here.scene.tenancy, here.flavor, 16, days=9)
    assert quota(judged(here, 1, starts=None, days=2)).value == 1
    assert quota(judged(here, 1)).value == 1
    with pytest.raises(Conflict, match="in all of that time"), transaction.atomic():
        grant(here, here.scene.tenancy, here.flavor, 8, starts=NEXT_WEEK, days=1)


def test_the_api_says_from_when_machines_fit(here: Site) -> None:
    now = timezone.now().replace(microsecond=0)
    row = granted(here, 4)
    Allocation.objects.filter(pk=row.pk).update(
        starts_at=now + DAY, until=now + 3 * DAY, kept_until=now + 3 * DAY
    )
    body = {
        "team": "vision",
        "offering": "reservation",
        "spec": {**shop.SPECS["reservation"], "vm_size": SIZE, "instances": 2},
        "starts_at": (now + DAY).isoformat(),
        "until": (now + 2 * DAY).isoformat(),
        "reason": REASON,
    }
    told = Caller(here.scene.ada).post("requests/preview/", body).json()
    assert datetime.fromisoformat(told["fits_from"]) == now + 3 * DAY


def test_it_begins_by_itself_where_the_quota_has_room(here: Site) -> None:
    row = granted(here, 4)
    assert bookings.look(row.pk, now=NEXT_WEEK - 2 * DAY) == ""
    assert bookings.begin(row.pk, now=NEXT_WEEK)
    row.refresh_from_db()
    assert row.reservation is not None
    assert row.reservation.machines == 4
    assert quota(judged(here, 1)).value == 0


def test_what_stands_in_its_way_is_told_two_days_before_with_the_next_step(
    here: Site,
) -> None:
    row = granted(here, 3)
    allow(here, 1)
    told = bookings.look(row.pk, now=NEXT_WEEK - 2 * DAY)
    assert told == (
        f"2 × {SIZE} more than the subscription quota of {FAMILY} has room for. "
        "An increase takes days: ask for it now."
    )
    assert (
        Notice.objects.filter(kind="booking_blocked", person=here.scene.ada).count()
        == 1
    )
    assert (
        Notice.objects.filter(kind="booking_blocked", person=here.scene.priya).count()
        == 1
    )
    allow(here, 3)
    assert bookings.look(row.pk, now=NEXT_WEEK - DAY) == ""


@pytest.mark.slow
def test_what_ends_before_it_begins_does_not_stand_in_its_way(here: Site) -> None:
    first = granted(here, 4, starts=None, days=5)
    made(first, used=6)
    second = granted(here, 4)
    assert bookings.look(second.pk, now=NEXT_WEEK - 2 * DAY) == ""


def test_it_waits_while_the_quota_has_no_room_and_begins_once_it_has(
    here: Site,
) -> None:
    row = granted(here, 3)
    allow(here, 2)
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    row.refresh_from_db()
    assert row.hindrance.startswith(f"1 × {SIZE} more than the subscription quota")
    assert not Reservation.objects.exists()
    allow(here, 3)
    assert bookings.begin(row.pk, now=NEXT_WEEK + HOUR)


@pytest.mark.slow
def test_of_two_that_begin_together_one_that_fits_begins(here: Site) -> None:
    first, second = granted(here, 3), granted(here, 3)
    assert bookings.begin(first.pk, now=NEXT_WEEK)
    assert not bookings.begin(second.pk, now=NEXT_WEEK)
    assert Request.objects.filter(state=State.APPROVED).count() == 2


def test_a_reservation_of_another_region_or_subscription_takes_nothing(
    here: Site,
) -> None:
    row = granted(here, 3)
    elsewhere = factories.cluster(
        "elsewhere", azure_id=AKS.replace(SUBSCRIPTION, OTHER) + "elsewhere"
    )
    far = kind(elsewhere, "far-a100", node_pool="a100")
    for changed in ({"region": "westeurope"}, {"nodes_for": far.key}):
        Allocation.objects.filter(pk=row.pk).update(spec={**row.spec, **changed})
        assert quota(judged(here, 1)).value == 4


def test_machines_for_a_kind_that_is_not_in_azure_any_more_take_quota_where_they_are_made(
    here: Site,
) -> None:
    row = granted(here, 3)
    gone = kind(factories.cluster("gone"), "gone-a100", node_pool="a100")
    for key in (gone.key, "nowhere/a100"):
        Allocation.objects.filter(pk=row.pk).update(spec={**row.spec, "nodes_for": key})
        assert quota(judged(here, 1)).value == 1


def test_what_has_begun_gives_quota_back_where_it_was_made(here: Site) -> None:
    row = granted(here, 4, starts=None, days=3)
    made(row, used=6)
    Reservation.objects.filter(allocations=row).update(subscription=OTHER)
    # Two others were made here, and do not go with it.
    assert quota(judged(here, 1)).value == 0


def test_without_azure_nothing_is_said_of_quota(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.conf.settings.ENV.azure_subscription_id", "")
    assert [
        one.code for one in judged(here, 40).answer.rules if one.code == "quota"
    ] == []


def known_free(flavor: Flavor) -> tuple[Level, ...]:
    """How many GPUs of a kind are free from when on."""
    return levels_of(
        Flavor.objects.select_related("cluster").get(pk=flavor.pk), now=NOW
    )


def free(flavor: Flavor) -> set[int]:
    """How many GPUs of a kind are free at some time from now on."""
    return {one.free for one in known_free(flavor)}


def free_at(flavor: Flavor, days: float) -> int:
    """GPUs of a kind that are free so many days from now."""
    at = NOW + timedelta(days=days)
    return lowest(known_free(flavor), start=at, end=at)


@pytest.mark.slow
def test_machines_for_a_kinds_nodes_take_the_place_of_those_that_its_gpus_need(
    here: Site,
) -> None:
    read_again(here.cluster)
    grant(here, here.scene.tenancy, here.flavor, 24, days=9)
    # Of the quota nothing is left to others, and to the nodes themselves as many as their GPUs need.
    assert quota(judged(here, 1)).value == 0
    assert quota(judged(here, 4, nodes_for=here.flavor.key)).holds
    assert quota(judged(here, 5, nodes_for=here.flavor.key)).value == 4
    row = granted(here, 4, nodes_for=here.flavor.key)
    assert bookings.look(row.pk, now=NEXT_WEEK - DAY) == ""
    assert bookings.begin(row.pk, now=NEXT_WEEK)
    assert free_at(here.flavor, 0) == 0
    assert quota(judged(here, 1)).value == 0


@pytest.mark.slow
def test_gpus_are_booked_on_machines_that_are_booked_for_their_nodes(
    here: Site,
) -> None:
    read_again(here.cluster)
    machines = granted(here, 4, nodes_for=here.flavor.key)
    assert free_at(here.flavor, 7.5) == 24
    gpus = grant(here, here.scene.tenancy, here.flavor, 24, starts=NEXT_WEEK, days=2)
    assert free_at(here.flavor, 7.5) == 0
    assert quota(judged(here, 1)).value == 0
    assert (
        bookings.look(machines.pk, now=NEXT_WEEK - DAY)
        == bookings.look(gpus.pk, now=NEXT_WEEK - DAY)
        == ""
    )


@pytest.mark.slow
@pytest.mark.parametrize("gpus_first", [True, False])
def test_gpus_and_their_machines_begin_in_either_order(
    here: Site, gpus_first: bool
) -> None:
    read_again(here.cluster)
    machines = granted(here, 4, nodes_for=here.flavor.key)
    gpus = grant(here, here.scene.tenancy, here.flavor, 24, starts=NEXT_WEEK, days=2)
    both = (gpus, machines) if gpus_first else (machines, gpus)
    assert [bookings.begin(one.pk, now=NEXT_WEEK) for one in both] == [True, True]


@pytest.mark.slow
def test_machines_that_are_booked_beyond_the_quota_carry_no_gpus(here: Site) -> None:
    read_again(here.cluster)
    granted(here, 6, nodes_for=here.flavor.key)
    assert free_at(here.flavor, 7.5) == 24
    # What others have booked beyond it leaves the nodes that stand.
    granted(here, 6)
    assert free_at(here.flavor, 7.5) == 8


@pytest.mark.slow
def test_machines_that_are_approved_and_not_made_yet_leave_their_own_kind_as_it_is(
    here: Site,
) -> None:
    read_again(here.cluster)
    assert free(here.flavor) == {24}
    row = granted(here, 2, starts=None, days=3, nodes_for=here.flavor.key)
    assert free(here.flavor) == {24}
    assert as_shared(Flavor.objects.get(pk=here.flavor.pk)).gpus_total == 24
    read_again(here.cluster)
    assert Flavor.objects.get(pk=here.flavor.pk).gpus_total == 24
    # To others they are taken, until they end.
    assert quota(judged(here, 1, starts=None, days=2)).value == 2
    assert quota(judged(here, 1)).value == 4
    # One is made, and is among the nodes.
    Reservation.objects.filter(allocations=row).update(held=1)
    FamilyQuota.objects.update(used=3 * VCPUS)
    pool(
        here.cluster,
        at=NOW,
        name="qm1",
        nodes=0,
        max_nodes=2,
        labels=here.flavor.node_labels,
        reserved=1,
    )
    read_again(here.cluster)
    assert free(here.flavor) == {24}
    assert quota(judged(here, 1)).value == 4


@pytest.mark.slow
def test_gpus_on_machines_that_are_not_made_yet_are_not_promised_to_others(
    here: Site,
) -> None:
    read_again(here.cluster)
    granted(here, 2, starts=None, days=3, nodes_for=here.flavor.key)
    grant(here, here.scene.tenancy, here.flavor, 16, days=9)
    # Two nodes are to come: they are the machines, and after their end others that take as much.
    for days in (2, 9):
        assert quota(judged(here, 1, starts=None, days=days)).value == 2
    left = quota_left(wanted(here, 1).spec.model_dump(mode="json"))
    assert left == (2, f"the subscription quota of {FAMILY}")
    assert free(here.flavor) == {8, 24}


@pytest.mark.slow
@pytest.mark.parametrize(("have_their_labels", "left"), [(True, 24), (False, 16)])
def test_machines_for_a_kind_carry_others_of_its_nodes_where_they_have_its_labels(
    here: Site, have_their_labels: bool, left: int
) -> None:
    labels = here.flavor.node_labels if have_their_labels else {"mig": "1g.10gb"}
    slices = kind(
        here.cluster,
        "slices",
        node_pool="a100",
        resource="nvidia.com/mig-1g.10gb",
        node_labels=labels,
    )
    read_again(here.cluster)
    granted(here, 2, nodes_for=here.flavor.key)
    assert (free_at(slices, 0), free_at(slices, 7.5)) == (24, left)
    granted(here, 2, starts=None, days=3, nodes_for=here.flavor.key)
    assert free_at(slices, 0) == left


@pytest.mark.slow
def test_of_several_grants_for_a_reservation_what_ends_first_was_not_made(
    here: Site,
) -> None:
    read_again(here.cluster)
    first = granted(here, 2, starts=None, days=3, nodes_for=here.flavor.key)
    granted(here, 2, starts=None, days=6, nodes_for=here.flavor.key)
    Reservation.objects.filter(allocations=first).update(held=2)
    FamilyQuota.objects.update(used=4 * VCPUS)
    pool(
        here.cluster,
        at=NOW,
        name="qm1",
        nodes=0,
        max_nodes=4,
        labels=here.flavor.node_labels,
        reserved=2,
    )
    read_again(here.cluster)
    assert free(here.flavor) == {24}


@pytest.mark.parametrize(
    ("vcpus", "each", "carried", "left"),
    [
        pytest.param(400, 100, 0, 4, id="nothing is to be carried"),
        pytest.param(400, 100, 300, 4, id="each takes the place of a node"),
        pytest.param(400, 50, 300, 8, id="smaller ones leave more"),
        pytest.param(400, 200, 300, 1, id="larger ones need the rest beside the nodes"),
        pytest.param(700, 200, 300, 3, id="larger ones in the place of all nodes"),
        pytest.param(-100, 100, 300, -1, id="too few"),
    ],
)
def test_machines_left_where_nodes_are_made_of_them(
    vcpus: int, each: int, carried: int, left: int
) -> None:
    assert machines_left(vcpus, each=each, carried=carried, per_node=100) == left
