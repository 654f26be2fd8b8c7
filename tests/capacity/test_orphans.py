"""Orphaned reservations in Azure: found, told once, released in Azure's order, and left alone when used."""

from collections.abc import Iterator

import pytest

from audit.models import Event
from capacity.models import Orphan, Reservation, Subscription
from capacity.operations import PARKED
from capacity.orphans.actions import ask_release
from capacity.orphans.releasing import FILLED, NOT_OURS, release
from capacity.reservations import reconcile as engine
from capacity.reservations.actions import try_again
from capacity.reservations.naming import NUMBER, group_name
from capacity.subscriptions import observing
from capacity.tagging import tags
from connectors.azure.compute import AzureCompute
from connectors.azure.container_service import AzureContainerService, NewPool
from notices.models import Notice
from provisioning.clusters.installation import mark
from tests.capacity.connected import A100, T4, Site, connected, site
from tests.sandbox.azure.running import GROUP, SUBSCRIPTION, Running
from web.refusals import Conflict, NoRight

pytestmark = pytest.mark.django_db
DELETING = "Microsoft.Compute/capacityReservationGroups/capacityReservations/delete"


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


def read(here: Site) -> list[tuple[str, str]]:
    """Read the subscription again; what differs, by kind and group."""
    here.time.pass_(minutes=11)
    observing.observe(SUBSCRIPTION, now=here.time)
    return [(one.kind, one.group) for one in Orphan.objects.order_by("group")]


def made_in_azure(
    here: Site, name: str, *, machines: int = 2, tagged: bool = True
) -> str:
    """A reservation that somebody made past the portal; with its tags, it looks like one of the portal's."""
    compute = AzureCompute(here.azure.session())
    marks = (
        tags(NUMBER, 999, mark=mark(), team="vision", cost_centre="CC")
        if tagged
        else {}
    )
    compute.ensure_group(GROUP, name, location="eastus", tags=marks)
    compute.begin_create_reservation(
        GROUP, name, T4, location="eastus", size=T4, capacity=machines, tags=marks
    )
    return name


def lost(here: Site) -> Orphan:
    """One of ours in Azure that has no record, as a reading finds it."""
    made_in_azure(here, group_name(999, mark=mark(), team="vision"))
    read(here)
    return Orphan.objects.get()


def work(here: Site, row: Orphan, rounds: int = 10) -> None:
    """Let workers do what is due."""
    for _ in range(rounds):
        release(row.pk, now=here.time)
        here.time.pass_(seconds=20)


def groups(here: Site) -> list[str]:
    """The groups in Azure."""
    return sorted(one.name for one in AzureCompute(here.azure.session()).groups())


def test_an_orphaned_reservation_is_found_and_told_once(here: Site) -> None:
    row = lost(here)
    assert (row.kind, row.machines, row.vm_size, row.tagged_team) == (
        "orphaned",
        2,
        T4,
        "vision",
    )
    assert (
        Notice.objects.filter(kind="reservation_orphaned")
        .values("person")
        .distinct()
        .count()
        == 2
    )
    told = Notice.objects.count()
    read(here)
    assert Notice.objects.count() == told
    assert Event.objects.filter(kind="reservation.orphaned").count() == 1
    assert (
        Orphan.objects.get().first_seen_at
        == row.first_seen_at
        < Orphan.objects.get().seen_at
    )


def test_reservations_of_others_are_shown_apart_and_nobody_is_told(here: Site) -> None:
    made_in_azure(here, "theirs", tagged=False)
    assert read(here) == [("foreign", "theirs")]
    assert not Notice.objects.filter(kind="reservation_orphaned").exists()
    assert not Event.objects.filter(kind="reservation.orphaned").exists()


@pytest.mark.slow
def test_what_the_portal_reserved_is_no_orphan_at_any_step(here: Site) -> None:
    here.grant(2)
    assert read(here) == []
    here.work()
    assert read(here) == []


@pytest.mark.slow
def test_what_goes_behind_the_portals_back_is_missing_until_it_is_reserved_again(
    here: Site,
) -> None:
    here.grant(2)
    here.work()
    names = engine.Names.of(Reservation.objects.get())
    AzureCompute(here.azure.session()).begin_delete_reservation(
        GROUP, names.group, names.reservation
    )
    assert [kind for kind, _ in read(here)] == ["missing"]
    found = Orphan.objects.get()
    assert (found.expected, found.machines, found.reservation_id) == (
        2,
        0,
        Reservation.objects.get().pk,
    )
    here.work()
    assert read(here) == []


@pytest.mark.slow
def test_a_number_that_was_changed_past_the_portal_is_told_with_both(
    here: Site,
) -> None:
    here.grant(2)
    here.work()
    names = engine.Names.of(Reservation.objects.get())
    AzureCompute(here.azure.session()).begin_resize_reservation(
        GROUP, names.group, names.reservation, 5
    )
    read(here)
    found = Orphan.objects.get()
    assert (found.kind, found.expected, found.machines) == ("differs", 2, 5)


@pytest.mark.slow
def test_a_platform_lead_releases_it_and_nothing_of_it_stays(here: Site) -> None:
    row = lost(here)
    assert len(groups(here)) == 1
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    assert read(here) == [("orphaned", row.group)]
    work(here, row)
    assert groups(here) == []
    assert not Orphan.objects.exists()
    kinds = (
        Event.objects.filter(subject_type="orphan")
        .order_by("seq")
        .values_list("kind", flat=True)
    )
    assert list(kinds) == [
        "reservation.orphaned",
        "orphan.release_asked",
        "orphan.released",
    ]


def test_a_slow_release_is_asked_after_and_begun_once(here: Site) -> None:
    row = lost(here)
    here.azure.pace(60)
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    release(row.pk, now=here.time)
    row.refresh_from_db()
    assert row.operation is not None
    assert DELETING in here.azure.azure.asked
    here.azure.azure.asked.clear()
    here.time.pass_(seconds=30)
    release(row.pk, now=here.time)
    assert here.azure.azure.asked
    assert DELETING not in here.azure.azure.asked
    here.azure.advance(120)
    here.azure.pace(0)
    work(here, row)
    assert not Orphan.objects.exists()
    assert groups(here) == []


def test_a_group_of_ours_without_reservations_is_found_and_released(here: Site) -> None:
    name = group_name(999, mark=mark(), team="vision")
    marks = tags(NUMBER, 999, mark=mark(), team="vision", cost_centre="CC")
    AzureCompute(here.azure.session()).ensure_group(
        GROUP, name, location="eastus", tags=marks
    )
    read(here)
    row = Orphan.objects.get()
    assert (row.kind, row.name, row.title) == (
        "orphaned",
        "",
        "A group without reservations",
    )
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    work(here, row)
    assert groups(here) == []


def test_a_group_in_which_somebody_reserves_after_the_ask_is_left_alone(
    here: Site,
) -> None:
    name = group_name(999, mark=mark(), team="vision")
    marks = tags(NUMBER, 999, mark=mark(), team="vision", cost_centre="CC")
    compute = AzureCompute(here.azure.session())
    compute.ensure_group(GROUP, name, location="eastus", tags=marks)
    read(here)
    row = Orphan.objects.get()
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    compute.begin_create_reservation(
        GROUP, name, A100, location="eastus", size=A100, capacity=1
    )
    work(here, row)
    row.refresh_from_db()
    assert (row.release_asked_at, row.message) == (None, FILLED)
    assert groups(here) == [name]
    assert not Event.objects.filter(kind="orphan.released").exists()


@pytest.mark.slow
def test_somebody_elses_reservation_in_a_group_of_ours_stays_and_so_does_the_group(
    here: Site,
) -> None:
    row = lost(here)
    compute = AzureCompute(here.azure.session())
    compute.begin_create_reservation(
        GROUP, row.group, A100, location="eastus", size=A100, capacity=1
    )
    read(here)
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    work(here, row)
    assert groups(here) == [row.group]
    assert [one.name for one in compute.reservations(GROUP, row.group)] == [A100]
    assert read(here) == [("foreign", row.group)]


def test_what_azure_cannot_be_asked_about_is_kept_as_it_was(here: Site) -> None:
    row = lost(here)
    here.azure.fault(
        "GET", "capacityReservationGroups", times=9, status=503, retry_after=0
    )
    read(here)
    assert Orphan.objects.get().seen_at == row.seen_at
    assert not Subscription.objects.get().reachable


@pytest.mark.slow
def test_what_machines_use_is_not_released_and_says_so(here: Site) -> None:
    row = lost(here)
    _run_machines_on(here, row)
    read(here)
    assert Orphan.objects.get().associated == 1
    with pytest.raises(Conflict, match="1 machine uses it") as refused:
        ask_release(row.pk, by=here.scene.priya, now=here.time())
    assert refused.value.code == "machines_use_it"


def test_machines_that_came_after_the_ask_stop_the_release(here: Site) -> None:
    row = lost(here)
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    _run_machines_on(here, row)
    work(here, row)
    row.refresh_from_db()
    assert row.release_asked_at is None
    assert "1 machine uses it" in row.message
    assert len(groups(here)) == 1
    assert Event.objects.filter(kind="orphan.kept").count() == 1


def test_what_lost_its_mark_after_the_ask_is_left_alone(here: Site) -> None:
    row = lost(here)
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    for one in here.azure.azure.state.resources.values():
        one["tags"] = {}
    work(here, row)
    row.refresh_from_db()
    assert (row.release_asked_at, row.message) == (None, NOT_OURS)
    assert len(groups(here)) == 1


def test_azure_that_refuses_stands_on_the_row_and_is_tried_again(here: Site) -> None:
    row = lost(here)
    ask_release(row.pk, by=here.scene.priya, now=here.time())
    here.azure.fault(
        "DELETE",
        "capacityReservations/",
        status=403,
        code="AuthorizationFailed",
        message="No.",
    )
    release(row.pk, now=here.time)
    row.refresh_from_db()
    assert "AuthorizationFailed" in row.message
    here.time.pass_(minutes=10)
    work(here, row)
    assert not Orphan.objects.exists()


@pytest.mark.slow
def test_only_leads_release_and_only_what_is_orphaned(here: Site) -> None:
    row = lost(here)
    for person in (here.scene.ada, here.scene.elena):
        with pytest.raises(NoRight):
            ask_release(row.pk, by=person, now=here.time())
    made_in_azure(here, "theirs", tagged=False)
    read(here)
    with pytest.raises(Conflict) as refused:
        ask_release(
            Orphan.objects.foreign().get().pk, by=here.scene.priya, now=here.time()
        )
    assert refused.value.code == "not_an_orphan"
    with pytest.raises(Conflict) as gone:
        ask_release(10**9, by=here.scene.priya, now=here.time())
    assert gone.value.code == "orphan_is_gone"


def test_a_parked_reservation_is_tried_again_by_a_lead_alone(here: Site) -> None:
    here.grant(2)
    Reservation.objects.update(parked_at=here.time(), message=PARKED, unfinished=5)
    here.work()
    row = Reservation.objects.get()
    assert row.state == "pending"
    with pytest.raises(NoRight):
        try_again(row.pk, by=here.scene.ada, now=here.time())
    try_again(row.pk, by=here.scene.priya, now=here.time())
    here.work()
    row.refresh_from_db()
    assert (row.state, row.held) == ("reserved", 2)
    assert Event.objects.filter(kind="reservation.tried_again").count() == 1
    Reservation.objects.update(state="releasing", machines=0)
    Reservation.objects.update(
        state="released", released_at=here.time(), held=0, used=0
    )
    with pytest.raises(Conflict):
        try_again(row.pk, by=here.scene.priya, now=here.time())


def _run_machines_on(here: Site, row: Orphan) -> None:
    """A node pool that takes its one machine from a reservation."""
    compute = AzureCompute(here.azure.session())
    group = compute.group(row.resource_group, row.group)
    assert group is not None
    pool = NewPool(size=T4, minimum=1, maximum=1, reservation_group=group.id)
    AzureContainerService(here.azure.session()).begin_create_pool(
        GROUP, "dev-eastus", "borrowed", pool
    )
