"""Work that outlives what is held, on a real cluster: listed, stopped on its date and no more of it than is over."""

from datetime import timedelta
from decimal import Decimal

import pytest

from accounts.roles import Role
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Leftover, StoppedWork
from allocations.notices import fate
from allocations.use import over_quota
from audit.models import Event
from connectors.errors import PermanentError
from fleet.models import Cluster
from notices.kinds import NoticeKind
from notices.models import Notice
from policy.document import Thresholds
from provisioning.delivery import client_for
from sandbox.kubernetes.store import Change
from tests import factories
from tests.provisioning.conftest import Place
from tests.subscribed import channel_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def generous(place: Place) -> None:
    """A policy that grants four at once."""
    wide = Thresholds(
        automatic_gpus=24,
        window_gpus_team=1000,
        window_gpus_person=None,
        automatic_usd=Decimal(10_000),
        window_usd_team=None,
        window_usd_person=None,
        automatic_gpu_hours=None,
    )
    factories.policy(wide, now=place.time - DAY)


def hold(
    place: Place, gpus: int, *, terms: tuple[int, str, int] = (0, "drain", 24)
) -> Allocation:
    asked = factories.request(
        place.ada, place.tenancy, place.a100, gpus=gpus, now=place.time
    )
    rows = Allocation.objects.filter(hold=asked.hold_id, ended_at=None)
    grace, when_over, drain = terms
    rows.update(grace_hours=grace, when_over=when_over, drain_hours=drain)
    place.reconcile()
    return rows.get()


def work(place: Place, name: str, gpus: int, priority: int = 0) -> None:
    body = {
        "namespace": place.tenancy.namespace,
        "flavor": "a100",
        "gpus": gpus,
        "name": name,
        "priority": priority,
    }
    place.kubernetes.write("POST", "/sandbox/workloads", body)


def running(place: Place) -> list[str]:
    found = client_for(place.cluster).list(over_quota.WORKLOAD, place.tenancy.namespace)
    return sorted(
        one["metadata"]["name"] for one in found if "admission" in one["status"]
    )


def quota(place: Place) -> tuple[str, str]:
    """What the namespace has room for, and what the queue guarantees."""
    client = client_for(place.cluster)
    hard = client.get(("v1", "ResourceQuota"), "team-quota", place.tenancy.namespace)
    queue = client.get(over_quota.QUEUE, place.tenancy.namespace)
    assert hard is not None
    assert queue is not None
    flavors = {
        f["name"]: f
        for group in queue["spec"]["resourceGroups"]
        for f in group["flavors"]
    }
    nominal = next(
        r["nominalQuota"] for r in flavors["a100"]["resources"] if r["name"] == GPU
    )
    return hard["spec"]["hard"][f"requests.{GPU}"], nominal


def look(place: Place, **later: float) -> int | None:
    place.later(**later)
    return over_quota.look(place.tenancy.pk, now=place.now)


@pytest.fixture
def three(place: Place) -> Allocation:
    """Four GPUs held, on which three jobs run: a late one, an early one and an important one."""
    row = hold(place, 4)
    for name, gpus, priority in (
        ("early", 1, 0),
        ("important", 2, 1000),
        ("late", 1, 0),
    ):
        work(place, name, gpus, priority)
    return row


@pytest.mark.slow
def test_the_quota_goes_down_at_once_and_there_is_room_for_what_runs(
    place: Place, three: Allocation
) -> None:
    channel = channel_of(NoticeKind.WORK_STOPPED)
    give_back(three.pk, gpus=None, by=place.ada, now=place.time)
    assert look(place) == 0
    assert (
        Leftover.objects.get().seen_at is None
    )  # the queue is not lowered yet: more could start
    place.reconcile()
    assert quota(place) == ("4", "0")
    look(place, seconds=5)
    left = Leftover.objects.get()
    assert {one["name"] for one in left.running} == {"early", "important", "late"}
    assert left.running[-1]["name"] == "important"
    assert running(place) == ["early", "important", "late"]
    told, in_channel = Notice.objects.filter(kind="work_stopped").order_by("id")
    assert told.message["title"] == "3 jobs still use GPUs that are no longer held"
    assert ["Team", "Vision"] in told.message["facts"]
    assert (in_channel.channel, in_channel.message) == (channel, told.message)
    look(place, minutes=5)
    assert Notice.objects.filter(kind="work_stopped").count() == 2


@pytest.mark.slow
def test_work_that_ends_by_itself_gives_its_room_back(
    place: Place, three: Allocation
) -> None:
    give_back(three.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    look(place)
    for name in ("early", "important", "late"):
        work(place, name, 0)
    look(place, minutes=1)
    assert Leftover.objects.get().done_at == place.time
    place.reconcile()
    assert quota(place) == ("0", "0")
    assert not StoppedWork.objects.exists()
    assert Event.objects.filter(kind="work.settled").count() == 1


@pytest.mark.slow
def test_on_its_date_only_as_much_is_stopped_as_is_over(
    place: Place, three: Allocation
) -> None:
    rest = give_back(three.pk, gpus=1, by=place.ada, now=place.time)
    assert rest is not None
    place.reconcile()
    look(place)
    assert look(place, hours=23) == 0
    assert running(place) == ["early", "important", "late"]
    assert look(place, hours=1, minutes=1) == 1
    assert len(running(place)) == 2
    assert "important" in running(place)
    stopped = StoppedWork.objects.get()
    assert (stopped.gpus, stopped.done_at) == (1, place.time)
    event = Event.objects.get(kind="work.stopped")
    assert (event.details["job"], event.details["gpus"]) == (stopped.job, 1)
    assert look(place, minutes=1) == 0
    assert Leftover.objects.get().done_at == place.time
    place.reconcile()
    assert quota(place) == ("3", "3")
    assert Event.objects.filter(kind="work.stopped").count() == 1


@pytest.mark.slow
def test_an_end_whose_work_is_done_is_dealt_with_though_a_later_one_still_runs(
    place: Place, three: Allocation
) -> None:
    rest = give_back(three.pk, gpus=1, by=place.ada, now=place.time)
    assert rest is not None
    place.later(hours=12)
    give_back(rest.pk, gpus=1, by=place.ada, now=place.time)
    place.reconcile()
    look(place, seconds=5)
    first, second = Leftover.objects.order_by("since")
    work(place, "early", 0)
    assert look(place, hours=12, minutes=1) == 0
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.done_at, first.running, second.done_at) == (place.time, [], None)
    place.reconcile()
    assert quota(place) == ("3", "2")
    assert running(place) == ["important", "late"]


@pytest.mark.slow
def test_at_the_end_of_a_notebook_work_stops_at_once(place: Place) -> None:
    row = hold(place, 2, terms=(0, "stop", 0))
    work(place, "notebook", 2)
    assert expire(row.pk, now=row.until)
    place.time = row.until
    place.reconcile()
    assert look(place) == 1
    assert running(place) == []
    found = client_for(place.cluster).get(
        over_quota.WORKLOAD, "notebook", place.tenancy.namespace
    )
    assert found is not None
    assert found["spec"]["active"] is False
    evicted = next(c for c in found["status"]["conditions"] if c["type"] == "Evicted")
    assert (evicted["status"], evicted["reason"]) == ("True", "Deactivated")
    assert [n.message["title"] for n in Notice.objects.filter(kind="work_stopped")] == [
        "1 job was stopped"
    ]


@pytest.mark.slow
def test_what_the_cluster_refuses_to_stop_is_said_once_and_tried_again(
    place: Place,
) -> None:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    row = hold(place, 2, terms=(0, "stop", 0))
    work(place, "notebook", 2)
    assert expire(row.pk, now=row.until)
    place.time = row.until
    place.reconcile()
    place.kubernetes.fail("/workloads/", method="PATCH", status=403)
    for _ in range(3):
        look(place, seconds=61)
    left = Leftover.objects.get()
    assert "injected fault" in left.trouble
    assert fate([left], now=place.time).startswith(
        "It could not be stopped, and is tried again"
    )
    told = Notice.objects.filter(
        person=priya, message__title__icontains="could not be stopped on"
    )
    assert told.count() == 1
    place.kubernetes.cluster.faults.clear()
    assert look(place, seconds=61) == 1
    assert Leftover.objects.get().trouble == ""


@pytest.mark.slow
def test_work_that_the_cluster_refuses_to_stop_keeps_no_other_running(
    place: Place,
) -> None:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    row = hold(place, 4, terms=(0, "stop", 0))
    for name in ("one", "two", "three", "four"):
        work(place, name, 1)
    give_back(row.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    for name in ("two", "three"):
        place.kubernetes.fail(f"/workloads/{name}$", method="PATCH", status=403)
    for _ in range(3):
        look(place, seconds=61)
    assert running(place) == ["three", "two"]
    assert "injected fault" in Leftover.objects.get().trouble
    assert Event.objects.filter(kind="work.stopped").count() == 2
    told = Notice.objects.filter(
        person=priya, message__title__icontains="could not be stopped on"
    )
    assert told.count() == 1
    place.kubernetes.cluster.faults.clear()
    assert look(place, seconds=61) == 2
    assert (running(place), Leftover.objects.get().trouble) == ([], "")


def test_on_a_cluster_by_git_nothing_is_stopped_and_nothing_else_is_promised(
    place: Place,
) -> None:
    Cluster.objects.update(
        delivery=Cluster.Delivery.GIT, git_url="https://git.example/clusters.git"
    )
    asked = factories.request(
        place.ada, place.tenancy, place.a100, gpus=2, now=place.time
    )
    held = Allocation.objects.get(hold=asked.hold_id)
    assert held.terms.stop_at(held.until) is None
    assert "stopped" not in " ".join(step.words for step in held.next_steps(place.time))


def test_a_cluster_that_came_to_follow_git_is_written_to_no_more(place: Place) -> None:
    row = hold(place, 2, terms=(0, "stop", 0))
    work(place, "notebook", 2)
    assert expire(row.pk, now=row.until)
    place.time = row.until
    place.reconcile()
    Cluster.objects.update(
        delivery=Cluster.Delivery.GIT, git_url="https://git.example/clusters.git"
    )
    written = place.kubernetes.writes
    assert look(place, seconds=61) == 0
    assert (running(place), place.kubernetes.writes) == (["notebook"], written)
    assert Leftover.objects.get().stop_at is None


def test_what_may_finish_is_listed_and_never_stopped(place: Place) -> None:
    row = hold(place, 2, terms=(0, "finish", 0))
    work(place, "training", 2)
    give_back(row.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    look(place)
    assert look(place, days=400) == 0
    assert running(place) == ["training"]
    assert [one["job"] for one in Leftover.objects.get().running] == [
        "Workload training"
    ]


@pytest.mark.slow
def test_new_gpus_take_over_what_was_over(place: Place, three: Allocation) -> None:
    give_back(three.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    look(place)
    hold(place, 4)
    assert look(place, hours=30) == 0
    assert running(place) == ["early", "important", "late"]
    assert Leftover.objects.open().count() == 0


def test_a_cluster_that_is_away_delays_and_loses_nothing(place: Place) -> None:
    row = hold(place, 2, terms=(0, "stop", 0))
    work(place, "notebook", 2)
    give_back(row.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    place.kubernetes.fail(where="workloads", status=503, times=100)
    assert look(place) == 0
    assert (Leftover.objects.open().count(), StoppedWork.objects.count()) == (1, 0)
    place.kubernetes.cluster.faults.clear()
    assert look(place, seconds=10) is None
    assert look(place, minutes=1) == 1
    assert running(place) == []
    assert Event.objects.filter(kind="work.stopped").count() == 1


def died(*_: object, **__: object) -> None:
    raise SystemExit


@pytest.mark.slow
def test_who_dies_between_writing_down_and_stopping_is_finished_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = hold(place, 2, terms=(0, "stop", 0))
    work(place, "notebook", 2)
    give_back(row.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    with monkeypatch.context() as patch:
        patch.setattr(over_quota, "_note_stopped", died)
        with pytest.raises(SystemExit):
            look(place)
    assert (StoppedWork.objects.get().done_at, running(place)) == (None, [])
    assert look(place, seconds=1) is None
    assert look(place, minutes=2) == 1
    assert (running(place), Event.objects.filter(kind="work.stopped").count()) == (
        [],
        1,
    )


def test_another_workload_of_the_same_name_is_left_alone(place: Place) -> None:
    row = hold(place, 2, terms=(0, "stop", 0))
    work(place, "notebook", 2)
    give_back(row.pk, gpus=None, by=place.ada, now=place.time)
    place.reconcile()
    sight = over_quota.see(client_for(place.cluster), place.row)
    over_quota.settle(place.tenancy.pk, sight, now=place.time)
    work(place, "notebook", 0)
    work(place, "notebook", 1)
    assert over_quota.stop(client_for(place.cluster), place.row, now=place.now) == 0
    assert running(place) == ["notebook"]
    assert not Event.objects.filter(kind="work.stopped").exists()


def test_the_portal_may_not_make_a_workload_that_is_gone(place: Place) -> None:
    hold(place, 1)
    with pytest.raises(PermanentError) as refused:
        client_for(place.cluster).merge(
            over_quota.WORKLOAD,
            "gone",
            place.tenancy.namespace,
            {"spec": {"active": False}},
        )
    assert refused.value.code == "not_found"


@pytest.mark.slow
def test_there_is_a_quota_at_every_moment(place: Place, three: Allocation) -> None:
    seen: list[Change] = []
    place.kubernetes.cluster.store.listen(seen.append)
    give_back(three.pk, gpus=None, by=place.ada, now=place.time)
    for _ in range(4):
        place.reconcile()
        look(place, hours=12)
    place.reconcile()
    assert (quota(place), running(place)) == (("0", "0"), [])
    of_quota = [
        c
        for c in seen
        if c.resource[1] in ("resourcequotas", "clusterqueues") and c.before is not None
    ]
    rooms = [
        int(c.after.obj["spec"]["hard"][f"requests.{GPU}"])
        for c in of_quota
        if c.resource[1] == "resourcequotas"
    ]
    assert rooms[-1] == 0
    assert rooms == sorted(rooms, reverse=True)
    assert not [
        c
        for c in seen
        if c.removed
        and c.resource[1] in ("resourcequotas", "clusterqueues", "localqueues")
    ]
