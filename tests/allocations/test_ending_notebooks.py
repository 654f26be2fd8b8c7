"""Notebooks end with the GPUs of the team that carry them, and their owners know an hour before."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from allocations.ends.actions import expire, give_back
from allocations.ends.notebooks import end_with_their_gpus, stop_those_with_pods
from allocations.models import Allocation
from allocations.schedule import Provisioner
from approvals.requests.actions import submit
from notebooks.models import NotebookServer
from notebooks.servers.states import State, StopReason
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def held(scene: Scene, gpus: int = 1, *, days: float = 1) -> Allocation:
    row = Allocation.objects.get(hold=scene.ask(gpus, days=days).hold_id)
    row.grace_hours, row.kept_until = 0, row.until
    row.save()
    return row


def working(scene: Scene, gpus: int = 1, *, launched: datetime = NOW) -> NotebookServer:
    return factories.notebook(
        scene.tenancy,
        scene.ada,
        flavor=scene.flavor,
        gpus=gpus,
        state=State.READY,
        ready_at=launched,
        created_at=launched,
    )


def tick(server: NotebookServer, at: datetime) -> tuple[str, datetime | None]:
    end_with_their_gpus(now=at)
    server.refresh_from_db()
    return server.state, server.told_end


def told() -> list[str]:
    rows = Notice.objects.filter(kind="notebook_idle").order_by("id")
    return [f"{one.message['title']}: {one.message['sentence']}" for one in rows]


def test_its_owner_is_told_once_and_it_stops_when_the_gpus_have_ended(
    scene: Scene,
) -> None:
    row, server = held(scene), working(scene)
    ends = row.kept_until
    assert tick(server, ends - HOUR - MINUTE) == (State.READY, None)
    for at in (ends - HOUR, ends - 30 * MINUTE, ends - MINUTE):
        assert tick(server, at) == (State.READY, ends)
    (said,) = told()
    assert said.startswith("Explore ends in 1 h: The GPUs that carry it go back then")
    # What ends has not ended before the portal has ended it.
    assert tick(server, ends + MINUTE)[0] == State.READY
    expire(row.pk, now=ends + MINUTE)
    assert tick(server, ends + MINUTE)[0] == State.STOPPING
    assert server.stop_reason == StopReason.END
    assert len(told()) == 1


def test_one_that_a_part_of_its_gpus_still_carries_goes_on_when_the_rest_ends(
    scene: Scene,
) -> None:
    rest, renewed, server = held(scene), held(scene, days=2), working(scene)
    Allocation.objects.update(notebook=server, provisioner=Provisioner.JUPYTERHUB)
    for row, state in ((rest, State.READY), (renewed, State.STOPPING)):
        expire(row.pk, now=row.kept_until)
        server.refresh_from_db()
        assert server.state == state


def test_one_whose_gpus_are_kept_longer_goes_on_and_is_told_anew_of_the_next_end(
    scene: Scene,
) -> None:
    row, server = held(scene), working(scene)
    ends = row.kept_until
    tick(server, ends - HOUR)
    Allocation.objects.filter(pk=row.pk).update(until=ends + DAY, kept_until=ends + DAY)
    assert tick(server, ends - 30 * MINUTE) == (State.READY, None)
    assert tick(server, ends + DAY - HOUR) == (State.READY, ends + DAY)
    assert len(told()) == 2


def test_what_the_team_holds_besides_carries_it_on(scene: Scene) -> None:
    row, server = held(scene), working(scene)
    held(scene, days=3)
    assert tick(server, row.kept_until - MINUTE) == (State.READY, None)
    expire(row.pk, now=row.kept_until)
    assert tick(server, row.kept_until + MINUTE) == (State.READY, None)
    assert told() == []


def test_the_one_that_was_launched_last_goes_first(scene: Scene) -> None:
    row = held(scene)
    held(scene, days=3)
    second, first = working(scene, launched=NOW + HOUR), working(scene)
    tick(second, row.kept_until - MINUTE)
    expire(row.pk, now=row.kept_until)
    assert tick(second, row.kept_until)[0] == State.STOPPING
    first.refresh_from_db()
    assert (first.state, first.told_end) == (State.READY, None)


def test_gpus_that_are_given_back_under_it_leave_it_half_an_hour(scene: Scene) -> None:
    row, server = held(scene), working(scene)
    give_back(row.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    gone = NOW + HOUR
    for at in (gone, gone + 29 * MINUTE):
        assert tick(server, at) == (State.READY, gone + 30 * MINUTE)
    (said,) = told()
    assert "Your team holds too few GPUs for it by now" in said
    assert tick(server, gone + 30 * MINUTE)[0] == State.STOPPING
    assert server.stop_reason == StopReason.END


def test_one_that_waits_for_room_is_not_said_to_end(scene: Scene) -> None:
    held(scene)
    working(scene)
    waits = factories.notebook(
        scene.tenancy,
        scene.ada,
        flavor=scene.flavor,
        state=State.STARTING,
        created_at=NOW + MINUTE,
    )
    assert tick(waits, NOW + HOUR) == (State.STARTING, None)


def test_ends_that_are_held_back_stop_no_notebook(scene: Scene) -> None:
    row, server = held(scene), working(scene)
    assert tick(server, row.kept_until + 365 * DAY) == (State.READY, None)
    assert told() == []


def test_its_page_says_that_its_time_is_over_while_its_end_is_held_back(
    scene: Scene,
) -> None:
    row, server = held(scene), working(scene)
    over = timezone.now() - MINUTE
    Allocation.objects.filter(pk=row.pk).update(
        until=over, kept_until=over, remind_at=None
    )
    NotebookServer.objects.update(told_end=over)
    browser = Client()
    browser.force_login(scene.ada)
    page = browser.get(reverse("notebook", args=[server.pk])).content.decode()
    assert "The time of its GPUs is over." in page
    assert "It is stopped on <" not in page
    assert (
        Caller(scene.ada).get(f"notebooks/{server.pk}/").json()["gpus_go_back_at"]
        is None
    )


def test_a_booking_carries_on_what_its_time_comes_for_unless_something_stands_in_its_way(
    scene: Scene,
) -> None:
    row, server = held(scene), working(scene)
    ends = row.kept_until
    wanted = replace(scene.wanted(1, days=4), starts=ends)
    submit(wanted, by=scene.ada, now=NOW)
    booking = Allocation.objects.booked().get()
    assert tick(server, ends - HOUR) == (State.READY, None)
    Allocation.objects.filter(pk=booking.pk).update(hindrance="Its size is gone.")
    assert tick(server, ends - HOUR) == (State.READY, ends)
    Allocation.objects.filter(pk=booking.pk).update(hindrance="")
    expire(row.pk, now=ends)
    assert tick(server, ends + MINUTE) == (State.READY, None)
    # It should have begun by then.
    late = ends + 3 * MINUTE
    assert tick(server, late) == (State.READY, late + 30 * MINUTE)


def test_a_notebook_without_gpus_needs_none_to_carry_it(scene: Scene) -> None:
    server = factories.notebook(
        scene.tenancy,
        scene.ada,
        gpus=0,
        usd_per_hour="0",
        state=State.READY,
        ready_at=NOW,
        created_at=NOW,
    )
    assert tick(server, NOW + HOUR) == (State.READY, None)


def test_its_page_and_the_api_say_when_and_lead_to_keeping_the_gpus(
    scene: Scene,
) -> None:
    now = timezone.now()
    row, server = held(scene), working(scene)
    ends = now + 40 * MINUTE
    Allocation.objects.filter(pk=row.pk).update(until=ends, kept_until=ends)
    end_with_their_gpus(now=now)
    browser = Client()
    browser.force_login(scene.ada)
    page = browser.get(reverse("notebook", args=[server.pk])).content.decode()
    assert "It is stopped on" in page
    assert f"/allocations/{row.pk}/renew" in page
    told_end = (
        Caller(scene.ada).get(f"notebooks/{server.pk}/").json()["gpus_go_back_at"]
    )
    assert told_end == ends.isoformat().replace("+00:00", "Z")
    # A platform lead reads it, and has nothing to keep.
    browser.force_login(scene.priya)
    page = browser.get(reverse("notebook", args=[server.pk])).content.decode()
    assert "It is stopped on" in page
    assert "Keep the GPUs longer" not in page


def test_pods_that_have_to_stop_stop_their_notebooks_with_the_true_reason(
    scene: Scene,
) -> None:
    server, other = working(scene), working(scene)
    place = Tenancy.objects.get(pk=scene.tenancy.pk)
    stop_those_with_pods(
        place, {f"jupyter-ada--{server.name}---0a1b2c3d", "train-0"}, now=NOW + HOUR
    )
    server.refresh_from_db()
    other.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.END)
    assert other.state == State.READY


def test_a_name_that_was_given_in_the_hub_is_its_accounts_alone(scene: Scene) -> None:
    server = working(scene)
    server.name, server.username = "work", "ada"
    assert server.is_pod("jupyter-ada--work")
    assert not server.is_pod("jupyter-ben--work")
    assert not server.is_pod("jupyter-ada--work2")
