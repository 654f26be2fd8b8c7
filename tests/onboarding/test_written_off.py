"""A cluster that is gone for good is written off: what its teams had there ends, and nobody waits for it any more."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from allocations.ends.actions import expire
from allocations.models import Allocation, Leftover, StoppedWork
from allocations.use import over_quota
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from approvals.states import State
from audit.models import Event
from checks.clusters import look_at_clusters
from checks.findings import Report
from fleet.clusters.actions import change_cluster
from fleet.models import Cluster
from fleet.write_off import write_off
from notebooks.servers import following as notebooks
from notebooks.servers.models import NotebookServer
from notices.models import Notice
from offboarding import written_off
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.reconcile import reconcile
from provisioning.stages import Stage
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene
from tests.scene import scene as make
from web.refusals import BadInput, Conflict, NoRight, Refused
from workloads.runs import following as runs
from workloads.runs.models import Run
from workloads.runs.pages.page import sentence_of
from workloads.runs.shown import RunSeen

pytestmark = pytest.mark.django_db

AWAY = NOW + DAY
LATER = AWAY + 2 * DAY
# The API server answers, Kueue does not.
HALF = [{"part": "API server", "state": "good", "words": "v1.36.2"}]


@pytest.fixture
def scene() -> Scene:
    return make()


def go_away(scene: Scene, **fields: Any) -> Cluster:
    """The cluster answers no more, and a lead has taken it out of use."""
    seen = {
        "enabled": False,
        "reachable": False,
        "away_since": AWAY,
        "message": "timed out",
        "identity": "u-1",
    }
    Cluster.objects.update(**seen | fields)
    return Cluster.objects.get()


def end_of_it(scene: Scene, *, now: Any = LATER) -> Tenancy:
    """Written off; then the clock's task and a worker have their turn."""
    write_off(scene.flavor.cluster_id, name="training", by=scene.priya, now=now)
    written_off.sweep(now=now)
    reconcile(scene.tenancy.pk, now=lambda: now)
    return Tenancy.objects.get(pk=scene.tenancy.pk)


def told(scene: Scene) -> list[str]:
    rows = Notice.objects.filter(person=scene.ada, kind="team_leaves")
    return [row.message["title"] for row in rows]


def test_what_a_team_had_there_ends_with_it(scene: Scene) -> None:
    scene.ask(2, days=9)
    waiting = scene.ask(20, days=9)
    assert waiting.state == State.WAITING
    before = scene.held_usd()
    go_away(scene)
    place = end_of_it(scene)
    assert (place.stage, place.is_protected, place.gone_at) == (
        Stage.GONE,
        False,
        LATER,
    )
    assert place.ready["message"] == "Its cluster is gone for good."
    assert not Allocation.objects.live().exists()
    assert scene.allocated() == 0
    assert scene.held_usd() < before
    assert Request.objects.get(pk=waiting.pk).state == State.WITHDRAWN
    assert told(scene) == ["Training is gone for good"]
    event = Event.objects.get(kind="cluster.written_off")
    assert event.details["identity"] == "u-1"
    gone = Event.objects.filter(kind__startswith="tenancy.", details__has_key="reason")
    assert gone.count() == 4
    freed = Event.objects.get(kind="allocation.returned")
    assert freed.details["reason"] == "its cluster is gone for good"


def test_nobody_looks_any_more_for_work_that_was_left_there(
    scene: Scene, client: Client
) -> None:
    scene.ask(2, days=1.5)
    held = Allocation.objects.get()
    go_away(scene)
    assert expire(held.pk, now=AWAY + DAY)
    left = Leftover.objects.get()
    work = {"tenancy": scene.tenancy, "uid": "u", "name": "n", "job": "Job train"}
    StoppedWork.objects.create(leftover=left, **work, gpus=2, asked_at=LATER)
    assert over_quota.due(LATER) == [scene.tenancy.pk]
    write_off(scene.flavor.cluster_id, name="training", by=scene.priya, now=LATER)
    assert over_quota.due(LATER) == []
    assert over_quota.look(scene.tenancy.pk, now=lambda: LATER) is None
    written_off.sweep(now=LATER)
    reconcile(scene.tenancy.pk, now=lambda: LATER)
    assert Tenancy.objects.get().stage == Stage.GONE
    assert Leftover.objects.get().done_at == LATER
    assert StoppedWork.objects.get().done_at == LATER
    client.force_login(scene.ada)
    page = client.get(f"/teams/{scene.team.slug}/").content.decode()
    assert "no longer held" not in page


def test_a_look_that_ends_after_its_place_was_let_go_of_wants_nothing_of_it(
    scene: Scene,
) -> None:
    scene.ask(2, days=1.5)
    assert expire(Allocation.objects.get().pk, now=AWAY + DAY)
    factories.leave(scene.tenancy, to="removing", at=LATER)
    before = Tenancy.objects.get().generation
    over_quota.settle(scene.tenancy.pk, over_quota.Sight([], {}), now=LATER)
    assert Leftover.objects.get().done_at == LATER
    assert Tenancy.objects.get().generation == before


def test_a_booking_there_is_cancelled(scene: Scene) -> None:
    spec = {"flavor": "training/a100", "gpus": 2, "purpose": "training"}
    begins = LATER + DAY
    wanted = resolve(
        "gpus",
        spec,
        team=scene.team,
        starts=begins,
        until=begins + DAY,
        reason="Retrain the detector before the review.",
    )
    asked = submit(wanted, by=scene.ada, now=NOW)
    assert Allocation.objects.get(hold=asked.hold_id).is_booked
    go_away(scene)
    end_of_it(scene)
    assert not Allocation.objects.filter(ended_at=None).exists()


def test_runs_and_notebooks_ended_when_it_went_away(scene: Scene) -> None:
    running = factories.run(
        scene.tenancy,
        scene.ada,
        state="running",
        created_at=NOW,
        sent_at=NOW,
        started_at=NOW,
        running_since=NOW,
    )
    unsent = factories.run(scene.tenancy, scene.ada, created_at=NOW)
    servers = [
        factories.notebook(scene.tenancy, scene.ada, created_at=NOW),
        factories.notebook(
            scene.tenancy, scene.ada, created_at=NOW, state="ready", ready_at=NOW
        ),
    ]
    go_away(scene)
    end_of_it(scene)
    gone: list[int] = []
    runs.follow(now=lambda: LATER, gone=gone.append)
    notebooks.follow(now=lambda: LATER)
    for run in Run.objects.filter(pk__in=[running.pk, unsent.pk]):
        assert (run.state, run.ended_at, gone) == ("gone", AWAY, [])
    running.refresh_from_db()
    words = "It ended with its cluster, which is gone for good."
    assert sentence_of(RunSeen(run=running, why=None, pods=(), seen=None)) == words
    states = NotebookServer.objects.filter(pk__in=[one.pk for one in servers])
    assert set(states.values_list("state", "stop_reason")) == {
        ("stopped", "cluster_gone")
    }
    assert not NotebookServer.objects.due(LATER + DAY).exists()


def test_what_was_being_deleted_in_vain_is_let_go_of(scene: Scene) -> None:
    factories.leave(scene.tenancy, to="removing", at=NOW)
    Tenancy.objects.update(
        generation=3, parked_at=NOW, requeue_at=NOW + 9 * DAY, is_true=False
    )
    go_away(scene)
    assert end_of_it(scene).stage == Stage.GONE
    assert told(scene) == []


def test_until_what_it_holds_is_given_back_a_place_is_not_let_go_of(
    scene: Scene,
) -> None:
    scene.ask(2)
    go_away(scene)
    write_off(scene.flavor.cluster_id, name="training", by=scene.priya, now=LATER)
    reconcile(scene.tenancy.pk, now=lambda: LATER)
    assert Tenancy.objects.get().stage == Stage.HERE
    written_off.sweep(now=LATER)
    written_off.sweep(now=LATER)
    assert Tenancy.objects.get().stage == Stage.REMOVING
    assert told(scene) == ["Training is gone for good"]


def test_of_a_cluster_that_stands_nothing_is_let_go_of(scene: Scene) -> None:
    go_away(scene)
    written_off.let_go(scene.tenancy.pk, now=LATER)
    assert leaving.let_go_of_written_off(
        scene.tenancy.pk, actor=scene.priya.as_actor(), now=LATER
    ) is (False)
    assert Tenancy.objects.get().stage == Stage.HERE


@pytest.mark.parametrize(
    ("fields", "name", "refused", "words"),
    [
        ({"enabled": True}, "training", Conflict, "is in use"),
        ({"away_since": None}, "training", Conflict, "was not found away"),
        ({"away_since": LATER - 2 * HOUR}, "training", Conflict, "may come back"),
        ({"parts": HALF}, "training", Conflict, "though not to everything"),
        ({}, "traning", BadInput, "as it is written here: training"),
    ],
)
def test_why_it_is_not_written_off(
    scene: Scene,
    fields: dict[str, Any],
    name: str,
    refused: type[Refused],
    words: str,
) -> None:
    cluster = go_away(scene, **fields)
    with pytest.raises(refused, match=words):
        write_off(cluster.pk, name=name, by=scene.priya, now=LATER)
    assert Cluster.objects.get().written_off_at is None


def test_only_platform_leads_do_and_twice_is_once(scene: Scene) -> None:
    cluster = go_away(scene)
    for stranger in (scene.ada, scene.elena):
        with pytest.raises(NoRight):
            write_off(cluster.pk, name="training", by=stranger, now=LATER)
    for moment in (LATER, LATER + timedelta(hours=1)):
        found = write_off(cluster.pk, name="training", by=scene.priya, now=moment)
        assert found.written_off_at == LATER
    assert Event.objects.filter(kind="cluster.written_off").count() == 1


def test_it_stays_out_of_use_and_is_asked_no_more(scene: Scene) -> None:
    go_away(scene)
    end_of_it(scene)
    with pytest.raises(Conflict, match="is written off"):
        change_cluster(
            scene.flavor.cluster_id, values={"enabled": True}, by=scene.priya
        )
    assert not Cluster.objects.looked_after().exists()
    report = Report()
    look_at_clusters(report, now=LATER)
    assert (report.notes, report.findings) == ([], [])
    # The machine behind it may be registered again, by another name.
    assert factories.cluster("second", identity="u-1").pk


@pytest.mark.slow
def test_over_api_and_page(scene: Scene, client: Client) -> None:
    scene.ask(2)
    cluster = go_away(scene, away_since=NOW - 9 * DAY)
    lead = Client()
    lead.force_login(scene.priya)
    page = lead.get("/clusters/training/write-off").content.decode()
    shown = " ".join(page.split())
    assert "1 team loses" in shown
    assert "2 GPUs that are held there end now" in shown
    wrong = lead.post("/clusters/training/write-off", {"name": "trainng"})
    assert wrong.status_code == 422
    assert "as it is written here: training" in wrong.content.decode()
    stranger = Client()
    stranger.force_login(scene.ada)
    assert stranger.get("/clusters/training/write-off").status_code == 403
    answer = Caller(scene.priya).post(
        "clusters/training/write-off/", {"name": "training"}
    )
    assert answer.status_code == 200
    assert answer.json()["written_off_at"] is not None
    page = lead.get("/clusters/training", follow=True).content.decode()
    assert "Written off" in page
    assert "timed out" not in page
    cluster.refresh_from_db()
    assert cluster.identity == ""
