"""Reservations from a grant to Azure and back: made, changed and released by workers, against the sandbox's Azure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F

from allocations.bookings import actions as bookings
from allocations.ends.actions import give_back_machines
from allocations.ends.sweep import sweep
from allocations.models import Allocation, Brake, Budget
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from audit.models import Event
from capacity.models import FamilyQuota, Orphan, Reservation, VmSize
from capacity.reservations.actions import try_again
from capacity.reservations.reconcile import NOT_JOINED, REMADE, Names
from capacity.reservations.states import State
from capacity.subscriptions.observing import observe
from connectors.azure.compute import AzureCompute
from connectors.azure.container_service import AzureContainerService, NewPool
from insights.reservations.gathering import waiting_of
from insights.reservations.page import rights
from insights.reservations.presenting import standing
from notices.models import Notice
from policy.rules import Arrival
from sandbox.azure.pools import Pools
from tests.approvals.shop import SPECS, approve
from tests.capacity.connected import A100, T4, Site, connected, site
from tests.sandbox.azure.running import SUBSCRIPTION, Running
from tests.scene import DAY

pytestmark = pytest.mark.django_db


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


@pytest.mark.slow
def test_a_grant_is_reserved_in_azure_and_costs_from_then_on(here: Site) -> None:
    allocation = here.grant(2)
    assert (allocation.reservation is None, allocation.charged_from) == (False, None)
    here.work()
    row, made = Reservation.objects.get(), Allocation.objects.get()
    assert (row.state, row.machines, row.held) == (State.RESERVED, 2, 2)
    assert made.charged_from is not None
    assert list(here.in_azure().values()) == [2]
    assert here.in_azure() == here.in_books()


@pytest.mark.slow
def test_quotas_are_read_again_once_machines_are_reserved_resized_or_released(
    here: Site,
) -> None:
    for days in (3, 1):
        here.grant(1, days=days)
        here.work()
        observe(SUBSCRIPTION, now=here.time)
        assert (
            FamilyQuota.objects.get(name__iexact="cores", region="eastus").seen_at
            == here.time()
        )
    seen = here.time()
    for row in Allocation.objects.live():
        give_back_machines(
            row.pk, machines=row.count, by=here.scene.ada, now=here.time()
        )
    here.work()
    observe(SUBSCRIPTION, now=here.time)
    assert FamilyQuota.objects.get(name__iexact="cores", region="eastus").seen_at > seen


@pytest.mark.slow
def test_more_for_the_same_place_grows_the_same_reservation(here: Site) -> None:
    here.grant(1)
    here.work()
    here.grant(2)
    here.work()
    assert Reservation.objects.count() == 1
    assert list(here.in_azure().values()) == [3]


@pytest.mark.slow
def test_machines_given_back_shrink_it_and_the_last_one_releases_it(here: Site) -> None:
    first, second = here.grant(2), here.grant(1)
    here.work()
    give_back_machines(second.pk, 1, by=here.scene.ada, now=here.time())
    here.work()
    assert list(here.in_azure().values()) == [2]
    give_back_machines(first.pk, 2, by=here.scene.ada, now=here.time())
    here.work()
    assert here.in_azure() == {}
    assert Reservation.objects.get().state == State.RELEASED


@pytest.mark.slow
def test_one_that_machines_use_says_so_and_is_released_once_none_does(
    here: Site,
) -> None:
    allocation = here.grant(1, vm_size=T4)
    here.work()
    row = Reservation.objects.get()
    group = AzureCompute(here.azure.session()).group(
        row.resource_group, Names.of(row).group
    )
    assert group is not None
    clusters = AzureContainerService(here.azure.session())
    pool = NewPool(size=T4, minimum=1, maximum=1, reservation_group=group.id)
    clusters.begin_create_pool(row.resource_group, "dev-eastus", "borrowed", pool)
    give_back_machines(allocation.pk, 1, by=here.scene.ada, now=here.time())
    here.work()
    row.refresh_from_db()
    assert row.state == State.RELEASING
    assert row.message.startswith(
        "1 machine uses it: Azure releases it, and stops charging for it, once none does."
    )
    clusters.begin_delete_pool(row.resource_group, "dev-eastus", "borrowed")
    here.work(rounds=40)
    assert here.in_azure() == {}
    assert Reservation.objects.get().state == State.RELEASED


def test_a_booked_reservation_is_made_when_it_begins(here: Site) -> None:
    begins = here.time() + 5 * DAY
    said = {**SPECS["reservation"], "instances": 2}
    wanted = resolve(
        "reservation",
        said,
        team=here.scene.team,
        until=begins + 2 * DAY,
        starts=begins,
        reason="For the review.",
    )
    asked = submit(wanted, by=here.scene.ada, now=here.time())
    approve(asked, by=(here.scene.priya, here.scene.elena), now=here.time())
    here.work()
    assert here.in_azure() == {}
    here.time.pass_(days=5)
    [row] = bookings.to_begin(here.time())
    assert bookings.begin(row, now=here.time())
    here.work()
    assert list(here.in_azure().values()) == [2]
    made = Allocation.objects.get()
    assert made.charged_from is not None
    assert made.charged_from >= begins


@pytest.mark.slow
def test_machines_that_are_booked_from_their_end_on_go_on_as_the_same_reservation(
    here: Site,
) -> None:
    first = here.grant(2, days=3)
    here.work()
    observe(SUBSCRIPTION, now=here.time)
    # The quota has room for nothing more.
    FamilyQuota.objects.update(limit=F("used"))
    kept = book(here, 2, starts=first.until, until=first.until + 2 * DAY)
    here.time.at = first.until
    expire_and_begin(here)
    first.refresh_from_db()
    kept.refresh_from_db()
    row = Reservation.objects.get()
    assert (first.ended_at, kept.begun_at) == (here.time(), here.time())
    assert (row.state, row.machines, row.generation) == (State.RESERVED, 2, 1)
    assert kept.reservation_id == row.pk
    here.work()
    assert list(here.in_azure().values()) == [2]
    kept.refresh_from_db()
    assert kept.charged_from is not None


@pytest.mark.slow
def test_fewer_that_are_booked_from_the_end_on_leave_the_reservation_smaller(
    here: Site,
) -> None:
    first = here.grant(2, days=3)
    here.work()
    book(here, 1, starts=first.until, until=first.until + 2 * DAY)
    here.time.at = first.until
    expire_and_begin(here)
    here.work()
    assert list(here.in_azure().values()) == [1]
    assert Reservation.objects.count() == 1


@pytest.mark.slow
def test_two_bookings_from_the_same_end_on_share_the_machines_that_are_there(
    here: Site,
) -> None:
    first = here.grant(2, days=3)
    here.work()
    observe(SUBSCRIPTION, now=here.time)
    # The quota has room for nothing more.
    FamilyQuota.objects.update(limit=F("used"))
    kept = [
        book(here, 1, starts=first.until, until=first.until + days * DAY)
        for days in (2, 3)
    ]
    here.time.at = first.until
    expire_and_begin(here)
    for each in kept:
        each.refresh_from_db()
    row = Reservation.objects.get()
    assert [one.begun_at for one in kept] == [here.time()] * 2
    assert (row.machines, row.generation) == (2, 1)


@pytest.mark.slow
def test_while_ends_are_held_back_what_is_booked_from_an_end_on_is_reserved_beside_it(
    here: Site,
) -> None:
    first = here.grant(2, days=3)
    here.work()
    kept = book(here, 2, starts=first.until, until=first.until + 2 * DAY)
    here.time.at = first.until
    Brake.objects.create(clock=here.time(), due=20, live=30)
    assert bookings.begin(kept.pk, now=here.time())
    assert Reservation.objects.get().machines == 4


@pytest.mark.slow
def test_a_booking_at_which_beginning_fails_keeps_nothing_from_its_end(
    here: Site,
) -> None:
    first = here.grant(2, days=3)
    here.work()
    broken = book(here, 2, starts=first.until, until=first.until + 2 * DAY)
    Allocation.objects.filter(pk=broken.pk).update(spec={})
    here.time.at = first.until
    with pytest.raises(ExceptionGroup):
        sweep(here.time())
    first.refresh_from_db()
    assert first.ended_at == here.time()


def book(here: Site, machines: int, *, starts: datetime, until: datetime) -> Allocation:
    """Have machines asked for from a later moment on, and approved."""
    wanted = resolve(
        "reservation",
        {**SPECS["reservation"], "instances": machines},
        team=here.scene.team,
        until=until,
        starts=starts,
        reason="The training goes on.",
    )
    asked = submit(wanted, by=here.scene.ada, now=here.time())
    approve(asked, by=(here.scene.priya, here.scene.elena), now=here.time())
    return Allocation.objects.get(hold=asked.hold)


def expire_and_begin(here: Site) -> None:
    """End what is due, then begin what is due."""
    sweep(here.time())
    for pk in bookings.to_begin(here.time()):
        bookings.begin(pk, now=here.time())


@pytest.mark.slow
def test_a_booked_reservation_of_what_azure_has_no_more_says_so_and_holds_up_no_other(
    here: Site,
) -> None:
    begins = here.time() + 5 * DAY
    for size in (A100, T4):
        said = {**SPECS["reservation"], "vm_size": size, "instances": 1}
        until = begins + 2 * DAY
        why = "For the review."
        wanted = resolve(
            "reservation",
            said,
            team=here.scene.team,
            until=until,
            starts=begins,
            reason=why,
        )
        asked = submit(wanted, by=here.scene.ada, now=here.time())
        approve(asked, by=(here.scene.priya, here.scene.elena), now=here.time())
    VmSize.objects.filter(name=A100).delete()
    gone, there = bookings.to_look_at(here.time.pass_(days=4))
    assert f"Azure has no {A100} in eastus" in bookings.look(gone, now=here.time())
    assert bookings.look(there, now=here.time()) == ""
    here.time.pass_(days=1)
    assert [
        bookings.begin(pk, now=here.time()) for pk in bookings.to_begin(here.time())
    ] == [False, True]
    row = Allocation.objects.get(pk=gone)
    assert (row.begun_at, row.reservation) == (None, None)
    assert f"Azure has no {A100} in eastus" in row.hindrance


def test_what_azure_made_is_told_as_such_when_the_portal_is_not_connected_any_more(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = here.grant(1).hold.request
    monkeypatch.setattr(settings.ENV, "azure_subscription_id", "")
    assert (asked.is_in_azure, asked.is_by_person, asked.arrival) == (
        True,
        False,
        Arrival.IN_AZURE,
    )


@pytest.mark.slow
def test_nodes_are_made_of_it_and_go_before_it(here: Site) -> None:
    allocation = here.grant(2, nodes_for="dev-eastus/t4")
    here.work(rounds=40)
    assert list(here.pools.values()) == [2]
    give_back_machines(allocation.pk, 1, by=here.scene.ada, now=here.time())
    here.work(rounds=40)
    assert list(here.pools.values()) == [1]
    assert list(here.in_azure().values()) == [1]
    give_back_machines(allocation.pk, 1, by=here.scene.ada, now=here.time())
    here.work(rounds=40)
    assert here.pools == {}
    assert here.in_azure() == {}


@pytest.mark.slow
def test_a_pool_that_aks_never_joins_is_made_anew_once_and_again_when_a_lead_asks(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def not_joined(
        self: Pools, call: object, resource_id: str, wanted: dict[str, Any]
    ) -> dict[str, Any]:
        made.append(resource_id)
        return {**wanted, "capacityReservationGroupID": None}

    with monkeypatch.context() as sandbox:
        # AKS does so, and does not say it.
        sandbox.setattr(Pools, "_associated", not_joined)
        here.grant(2, nodes_for="dev-eastus/t4")
        here.work(rounds=40)
        for _ in range(5):
            here.time.pass_(minutes=6)
            here.work(rounds=40)
        row = Reservation.objects.select_related("team").get()
        assert (len(made), row.state, row.pool_remade) == (2, State.RESERVED, True)
        assert list(here.pools.values()) == [2]
        assert row.message == f"{NOT_JOINED} {REMADE}"
        assert rights(row, here.scene.priya, []).retry
        assert not rights(row, here.scene.ada, []).retry
    try_again(row.pk, by=here.scene.priya, now=here.time())
    here.work(rounds=40)
    row.refresh_from_db()
    assert (row.message, row.is_true) == ("", True)
    assert not rights(row, here.scene.priya, []).retry


@pytest.mark.slow
def test_an_operation_that_never_ends_is_said_and_asked_after_no_more(
    here: Site,
) -> None:
    here.azure.fault("PUT", "capacityReservations/", operation={"hangs": True})
    allocation = here.grant(2)
    here.work(3)
    row = Reservation.objects.get()
    assert (row.operation or {}).get("step") == "reserve"
    here.time.pass_(minutes=31)
    here.work(1)
    row.refresh_from_db()
    assert row.message.startswith("Azure has worked on it since ")
    assert row.operation is not None
    here.time.pass_(hours=2)
    here.work(3)
    row.refresh_from_db()
    assert (row.operation, row.state) == (None, State.PENDING)
    assert row.message.startswith("Azure has worked on it since ")
    allocation.refresh_from_db()
    assert allocation.charged_from is None
    # What Azure still works on is not begun twice.
    assert len(here.in_azure()) == 1
    give_back_machines(allocation.pk, 2, by=here.scene.ada, now=here.time())
    assert sum(one.held_usd for one in Budget.objects.filter(team=here.scene.team)) == 0


@pytest.mark.slow
def test_an_operation_that_cannot_be_asked_after_is_looked_at_instead(
    here: Site,
) -> None:
    here.azure.fault("PUT", "capacityReservations/", operation={"hangs": True})
    here.grant(2)
    here.work(3)
    row = Reservation.objects.get()
    assert row.operation is not None
    here.azure.fault("GET", "/operations/", status=503, retry_after=0, times=999)
    here.time.pass_(hours=1)
    here.work(1)
    row.refresh_from_db()
    assert (row.operation is not None, "503" in row.message) == (True, True)
    here.time.pass_(hours=2)
    here.work(1)
    row.refresh_from_db()
    assert row.operation is None
    assert len(here.in_azure()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("jump", [-3, 3], ids=["back", "forward"])
def test_a_clock_that_jumps_during_an_operation_makes_nothing_twice_and_charges_no_earlier(
    here: Site, jump: int
) -> None:
    here.azure.fault("PUT", "capacityReservations/", operation={"seconds": 60})
    allocation = here.grant(2)
    here.work(1)
    operation = Reservation.objects.get().operation
    assert (operation or {}).get("step") == "reserve"
    here.time.pass_(hours=jump)
    here.work(3)
    here.azure.advance(60)
    # What was set back is due again once the clock has caught up.
    here.time.pass_(hours=max(0, -jump))
    here.work()
    row = Reservation.objects.get()
    assert (row.state, row.machines, row.held, row.operation) == (
        State.RESERVED,
        2,
        2,
        None,
    )
    assert here.in_azure() == here.in_books()
    allocation.refresh_from_db()
    assert allocation.charged_from is not None
    assert allocation.charged_from >= allocation.starts_at


@pytest.mark.slow
def test_a_quota_that_is_full_fails_the_grant_with_the_reason_and_frees_the_budget(
    here: Site,
) -> None:
    allocation = here.grant(200)
    before = sum(one.held_usd for one in Budget.objects.filter(team=here.scene.team))
    assert before > 0
    here.work()
    allocation.refresh_from_db()
    assert allocation.ended_at is not None
    assert allocation.end_reason == Allocation.End.FAILED
    assert "quota" in allocation.failure.lower()
    assert sum(one.held_usd for one in Budget.objects.filter(team=here.scene.team)) == 0
    here.work()
    assert here.in_azure() == {}
    assert Reservation.objects.get().state == State.RELEASED
    assert Event.objects.filter(kind="reservation.refused").exists()


OVER_QUOTA = (
    "Operation could not be completed as it results in exceeding approved Cores quota."
)


@pytest.mark.slow
@pytest.mark.parametrize("given_back", [0, 2])
def test_what_is_refused_after_a_while_fails_the_number_that_was_asked_for_alone(
    here: Site, given_back: int
) -> None:
    error = {"code": "OperationNotAllowed", "message": OVER_QUOTA}
    here.azure.fault(
        "PUT", "capacityReservations/", operation={"seconds": 60, "error": error}
    )
    allocation = here.grant(3)
    here.work(1)
    operation = Reservation.objects.get().operation
    assert (operation or {}).get("step") == "reserve"
    if given_back:
        give_back_machines(
            allocation.pk, given_back, by=here.scene.ada, now=here.time()
        )
    here.azure.advance(60)
    here.work()
    allocation.refresh_from_db()
    refused = Event.objects.filter(kind="reservation.refused").count()
    if given_back:
        assert (allocation.end_reason, allocation.failure, refused) == ("", "", 0)
        assert allocation.charged_from is not None
        assert list(here.in_azure().values()) == [1]
    else:
        assert (allocation.end_reason, refused) == (Allocation.End.FAILED, 1)
        assert OVER_QUOTA in allocation.failure
        assert here.in_azure() == {}


def shrunk_and_refused(here: Site) -> Reservation:
    """Two machines that are paid, of which somebody took one away in Azure, where there is no quota for it now."""
    here.grant(2)
    here.work()
    row = Reservation.objects.select_related("team").get()
    names = Names.of(row)
    AzureCompute(here.azure.session()).begin_resize_reservation(
        row.resource_group, names.group, names.reservation, 1
    )
    here.azure.fault(
        "PATCH",
        "capacityReservations/",
        status=409,
        code="OperationNotAllowed",
        message=OVER_QUOTA,
        times=99,
    )
    here.time.pass_(minutes=6)
    here.work()
    row.refresh_from_db()
    assert (row.state, row.is_true, row.is_refused) == (State.RESERVED, True, True)
    return row


@pytest.mark.slow
def test_what_was_paid_and_is_refused_is_told_and_shown_as_a_difference(
    here: Site,
) -> None:
    row = shrunk_and_refused(here)
    assert waiting_of([row]) == frozenset()
    said = standing(row, here.time(), grant_waits=False)
    assert "Azure has 1 of 2 machines, all of which are paid." in said.sentence
    assert rights(row, here.scene.priya, []).retry
    here.time.pass_(minutes=11)
    observe(SUBSCRIPTION, now=here.time)
    found = Orphan.objects.get()
    assert (found.kind, found.machines, found.expected) == ("differs", 1, 2)


@pytest.mark.slow
def test_what_was_paid_and_is_refused_is_tried_again_by_itself(here: Site) -> None:
    row = shrunk_and_refused(here)
    waits = []
    for _ in range(3):
        waits.append(row.requeue_at - here.time())
        here.time.at = row.requeue_at
        here.work(1)
        row.refresh_from_db()
    assert waits == sorted(waits)
    assert waits[-1] > 2 * waits[0]
    assert Event.objects.filter(kind="reservation.refused").count() == 1
    here.azure.admin("DELETE", "/sandbox/faults")
    here.time.at = row.requeue_at
    here.work()
    assert list(here.in_azure().values()) == [2]
    row.refresh_from_db()
    assert (row.refusal, row.is_refused, row.held) == ("", False, 2)


@pytest.mark.slow
def test_what_was_paid_and_is_refused_is_tried_again_when_a_lead_says_so(
    here: Site,
) -> None:
    row = shrunk_and_refused(here)
    here.azure.admin("DELETE", "/sandbox/faults")
    tried = try_again(row.pk, by=here.scene.priya, now=here.time())
    assert (tried.refusal, tried.refused_generation) == ("", None)
    here.work()
    assert list(here.in_azure().values()) == [2]
    assert not Allocation.objects.exclude(ended_at=None).exists()


def blocked_notices(here: Site) -> list[Notice]:
    found = Notice.objects.filter(kind="reservation_blocked", person=here.scene.priya)
    return list(found.order_by("pk"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "AuthorizationFailed"),
        (404, "ResourceGroupNotFound"),
        (404, "SubscriptionNotFound"),
        (409, "MissingSubscriptionRegistration"),
        (403, "RequestDisallowedByPolicy"),
        (409, "OperationNotAllowed"),
    ],
)
def test_what_keeps_the_portal_out_fails_no_grant_and_is_told_to_platform_leads(
    here: Site, status: int, code: str
) -> None:
    words = "The portal may not do this here."
    here.azure.fault(
        "PUT", "capacityReservations/", status=status, code=code, message=words, times=9
    )
    allocation = here.grant(2)
    here.work(1)
    assert blocked_notices(here) == []
    for _ in range(5):
        here.time.pass_(minutes=11)
        here.work(1)
    allocation.refresh_from_db()
    row = Reservation.objects.get()
    assert (allocation.ended_at, row.refusal, row.state) == (None, "", State.PENDING)
    shown = standing(row, here.time(), grant_waits=True)
    assert (shown.word, words in shown.sentence) == ("Waits for Azure", True)
    [notice] = blocked_notices(here)
    assert words in notice.said.sentence
    here.azure.admin("DELETE", "/sandbox/faults")
    try_again(row.pk, by=here.scene.priya, now=here.time())
    here.work()
    assert list(here.in_azure().values()) == [2]
    assert len(blocked_notices(here)) == 1


@pytest.mark.slow
def test_a_release_that_the_portal_may_not_make_is_told_to_platform_leads(
    here: Site,
) -> None:
    allocation = here.grant(1)
    here.work()
    here.azure.fault(
        "DELETE",
        "capacityReservations/",
        status=403,
        code="AuthorizationFailed",
        times=9,
    )
    give_back_machines(allocation.pk, 1, by=here.scene.ada, now=here.time())
    for _ in range(5):
        here.work(1)
        here.time.pass_(minutes=11)
    [notice] = blocked_notices(here)
    assert "What it holds is paid for meanwhile." in notice.said.sentence
