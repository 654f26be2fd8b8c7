"""What stands around a cluster that is written off: asks, departures, drift, hubs, and work that was under way."""

from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from allocations.models import Allocation
from approvals.fulfilment import leaving as requests
from approvals.requests.actions import submit
from approvals.requests.places import has_left
from approvals.requests.wanted import resolve
from approvals.states import State
from capacity.registry.actions import is_on_platform
from checks.invariants import BOOKS
from connectors.errors import TemporaryError
from connectors.jupyterhub import HubServer
from fleet.clusters.actions import change_cluster
from fleet.declared import declare
from fleet.flavors.actions import add_flavor, change_flavor
from fleet.models import Cluster, Flavor
from fleet.write_off import write_off
from notebooks.hubs.actions import connect
from notebooks.hubs.page import clusters_with_hubs
from notebooks.servers import following as notebooks
from notices.models import Notice
from offboarding import actions as departures
from offboarding import sweep as leaving_sweep
from offboarding import written_off
from offboarding.models import Departure
from offboarding.preview import seen
from provisioning import scheduling
from provisioning.clusters import identity, observe
from provisioning.drift import cluster_sweep
from provisioning.models import Drift, Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.onboarding.test_written_off import LATER, end_of_it, go_away
from tests.scene import DAY, HOUR, NOW, Scene
from tests.scene import scene as make
from web.refusals import Conflict
from workloads.runs import following as runs
from workloads.runs import sending

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    return make()


def ask_to_leave(scene: Scene) -> Departure:
    """Priya asks for the whole team to leave, in two months."""
    Tenancy.objects.update(is_protected=False)
    wish = departures.Wish(
        tenancies=[],
        is_whole=True,
        leaves_at=NOW + 60 * DAY,
        hold=False,
        retention_days=5,
        reason="The project is over.",
    )
    return departures.ask(scene.team, wish, by=scene.priya, now=NOW)


def confirm(departure: Departure, by: User, now: Any) -> Departure:
    what = seen(Departure.objects.get(pk=departure.pk))
    return departures.confirm(
        departure.pk, name="Vision", seen_content=what, by=by, now=now
    )


def lose_training(scene: Scene) -> None:
    """Training is gone; the team's other cluster stands."""
    Cluster.objects.filter(name="training").update(
        enabled=False, reachable=False, away_since=NOW, message="timed out"
    )
    end_of_it(scene)
    leaving_sweep.sweep(now=LATER)


def stage_of(name: str) -> str:
    return Tenancy.objects.get(cluster__name=name).stage


def test_a_namespace_that_another_team_asked_for_there_is_taken_back(
    scene: Scene,
) -> None:
    speech = factories.team("Speech", by=scene.ada)
    factories.join(speech, scene.ada)
    spec = {"cluster": "training", "environment": "production", "project": "main"}
    wanted = resolve(
        "namespace",
        spec,
        team=speech,
        until=NOW + 30 * DAY,
        reason="We need a production namespace here.",
    )
    asked = submit(wanted, by=scene.ada, now=NOW)
    assert asked.state == State.WAITING
    go_away(scene)
    end_of_it(scene)
    asked.refresh_from_db()
    assert asked.state == State.WITHDRAWN


@pytest.mark.slow
def test_what_had_reached_its_date_unseen_expires_and_the_books_agree(
    scene: Scene,
) -> None:
    scene.ask(2, days=1)
    scene.ask(1, days=9)
    go_away(scene)
    end_of_it(scene)
    ends = Allocation.objects.order_by("until").values_list("end_reason", flat=True)
    assert list(ends) == ["expired", "returned"]
    assert scene.allocated() == 0
    found = [finding for check in BOOKS.values() for finding in check(LATER + HOUR)]
    assert found == []


def test_while_azure_keeps_machines_there_it_is_not_written_off(scene: Scene) -> None:
    made = factories.reservation(scene.team, flavor=scene.flavor)
    cluster = go_away(scene)
    with pytest.raises(Conflict, match="Azure keeps machines for A100 here"):
        write_off(cluster.pk, name="training", by=scene.priya, now=LATER)
    made.delete()
    write_off(cluster.pk, name="training", by=scene.priya, now=LATER)


def test_a_departure_from_it_alone_that_nobody_confirmed_is_over(scene: Scene) -> None:
    asked = ask_to_leave(scene)
    lose_training(scene)
    asked.refresh_from_db()
    assert (asked.end, asked.ended_by) == ("withdrawn", "Quartermaster")


def test_a_departure_from_other_clusters_goes_on_without_it(scene: Scene) -> None:
    factories.tenancy(scene.team, factories.cluster("second"))
    asked = ask_to_leave(scene)
    lose_training(scene)
    assert confirm(asked, scene.marcus, LATER).confirmed_at == LATER
    assert (stage_of("training"), stage_of("second")) == (Stage.GONE, Stage.LEAVING)


def test_a_confirmed_departure_can_be_restored_where_something_stands(
    scene: Scene,
) -> None:
    factories.tenancy(scene.team, factories.cluster("second"))
    asked = confirm(ask_to_leave(scene), scene.marcus, NOW)
    lose_training(scene)
    departures.restore(asked.pk, by=scene.priya, now=LATER)
    assert (stage_of("training"), stage_of("second")) == (Stage.GONE, Stage.HERE)


def test_a_team_that_lost_its_only_cluster_has_not_left(scene: Scene) -> None:
    go_away(scene)
    end_of_it(scene)
    assert not has_left(scene.team)
    assert is_on_platform(scene.team)


def test_a_team_is_told_once_for_all_its_namespaces_there(scene: Scene) -> None:
    factories.tenancy(scene.team, scene.flavor.cluster, environment="test")
    cluster = go_away(scene)
    write_off(cluster.pk, name="training", by=scene.priya, now=LATER)
    written_off.sweep(now=LATER)
    assert Notice.objects.filter(person=scene.ada, kind="team_leaves").count() == 1


def test_an_ask_that_cannot_be_taken_back_keeps_no_place_from_being_let_go(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = submit(scene.wanted(9), by=scene.ada, now=NOW)
    cluster = go_away(scene)
    monkeypatch.setattr(requests, "drop", Mock(side_effect=TemporaryError("no lock")))
    write_off(cluster.pk, name="training", by=scene.priya, now=LATER)
    with pytest.raises(ExceptionGroup):
        written_off.sweep(now=LATER)
    monkeypatch.undo()
    assert Tenancy.objects.get(pk=scene.tenancy.pk).stage == Stage.REMOVING
    written_off.sweep(now=LATER)
    asked.refresh_from_db()
    assert asked.state == State.WITHDRAWN


def test_clusters_that_were_written_off_long_ago_cost_no_query_each(
    scene: Scene, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        written_off.sweep(now=LATER)
    for number in range(5):
        other = factories.cluster(f"gone-{number}")
        Cluster.objects.filter(pk=other.pk).update(enabled=False, written_off_at=LATER)
    with django_assert_num_queries(4):
        written_off.sweep(now=LATER)


def test_nobody_has_to_decide_anything_about_it(scene: Scene) -> None:
    Drift.objects.create(
        tenancy=scene.tenancy,
        kind="ResourceQuota",
        name="team-quota",
        what="changed",
        since=NOW,
        first_seen_at=NOW,
        contested=True,
    )
    go_away(
        scene,
        braked_at=NOW,
        brake_reason="Much would change.",
        capacity_doubt="It lists 1 of 8 nodes.",
        doubted_looks=1,
    )
    assert Drift.objects.waiting_for_lead().count() == 1
    end_of_it(scene)
    assert Drift.objects.waiting_for_lead().count() == 0
    lead = Client()
    lead.force_login(scene.priya)
    shown = lead.get("/clusters/training", follow=True).content.decode()
    for words in ("is not believed", "Let repairs go on", "Accept what it lists"):
        assert words not in shown
    assert "none any more" in shown


def test_a_look_that_comes_late_finds_nothing_out(scene: Scene) -> None:
    Tenancy.objects.update(
        generation=1, observed_generation=1, is_true=True, requeue_at=NOW
    )
    cluster = go_away(scene)
    write_off(cluster.pk, name="training", by=scene.priya, now=LATER)
    assert observe.look_at(cluster.pk, now=lambda: LATER) is False
    assert cluster.pk not in scheduling.clusters_to_sweep(now=LATER)
    assert cluster_sweep.sweep(cluster.pk, now=lambda: LATER) == []
    # One that read the row before, and is answered after.
    observe._seen(cluster, None, version="v1.36.2", parts=[], now=LATER)
    identity._keep(cluster, "u-1")
    cluster.refresh_from_db()
    assert (cluster.reachable, cluster.identity) == (False, "")


def test_it_is_changed_no_more_and_holds_up_no_declaration(scene: Scene) -> None:
    cluster = go_away(scene)
    end_of_it(scene)
    with pytest.raises(Conflict, match="is written off"):
        change_cluster(cluster.pk, values={"title": "Training East"}, by=scene.priya)
    with pytest.raises(Conflict, match="is written off"):
        change_flavor(scene.flavor.pk, values={"is_offered": True}, by=scene.priya)
    kind = {"product": "H100", "memory_gb": 80, "gpus_per_node": 8}
    with pytest.raises(Conflict, match="is written off"):
        add_flavor(
            cluster,
            name="h100",
            values=kind | {"price_per_gpu_hour": "6.98"},
            by=scene.priya,
        )
    assert not Flavor.objects.filter(is_offered=True).exists()
    place = {"region": "eastus", "purpose": "training", "kubeconfig": ""}
    done = declare([{"name": "training", "title": "Training", "enabled": True} | place])
    assert done == ["left out cluster training, which is written off"]


def test_its_hub_is_neither_asked_nor_connected(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.notebooks_on(scene.flavor.cluster)
    server = factories.notebook(
        scene.tenancy, scene.ada, created_at=NOW, state="ready", ready_at=NOW
    )
    cluster = go_away(scene)
    write_off(cluster.pk, name="training", by=scene.priya, now=LATER)
    cluster.refresh_from_db()

    class Answering:
        def servers(self) -> list[HubServer]:
            raise AssertionError("the hub was asked")

    monkeypatch.setattr(notebooks, "client_for", lambda hub: Answering())
    notebooks.follow(now=lambda: LATER)
    server.refresh_from_db()
    assert server.state == "stopped"
    assert clusters_with_hubs() == []
    with pytest.raises(Conflict, match="is written off"):
        connect(
            cluster,
            address="https://hub.example.com",
            token_file="hub",
            by=scene.priya,
            now=LATER,
        )


def test_a_worker_that_was_at_a_run_does_not_take_its_reason_away(scene: Scene) -> None:
    run = factories.run(scene.tenancy, scene.ada, created_at=NOW)
    go_away(scene)
    lease = sending.CONTROLLER.acquire(run.pk, now=LATER, only_due=True)
    assert lease is not None
    end_of_it(scene)
    runs.follow(now=lambda: LATER, gone=print)
    sending._failed(lease, TemporaryError("training: timed out"), now=LATER)
    run.refresh_from_db()
    assert (run.state, run.message) == (
        "gone",
        "It ended with its cluster, which is gone for good.",
    )


def test_one_that_is_seen_through_its_repository_alone_is_believed_gone(
    scene: Scene,
) -> None:
    cluster = go_away(
        scene,
        delivery="git",
        git_url="https://git.example/c.git",
        kubeconfig="",
        reachable=True,
        away_since=None,
        message="",
    )
    lead = Client()
    lead.force_login(scene.priya)
    page = lead.get("/clusters/training", follow=True).content.decode()
    assert "/clusters/training/write-off" in page
    done = write_off(cluster.pk, name="training", by=scene.priya, now=LATER)
    assert done.written_off_at == LATER
