"""A team's work, told from the copy: what runs, what waits and why, whoever started it, to whoever may see it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from accounts.roles import Permission, Role
from connectors.kubernetes import path
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from workloads import gathering, kept_boards
from workloads.board import TeamWork, work_of_team
from workloads.explanations import Action, Outlook, Step
from workloads.models import ClusterObject, Feed
from workloads.presenting import Lines
from workloads.reading.values import part, text
from workloads.team_context import context_of

# What was read of every namespace before.
SHARED = ("Workload", "Pod", "Node", "ClusterQueue")


def board(watched: Watched) -> TeamWork:
    return work_of_team(watched.team, by=watched.ada, now=timezone.now())


def states(watched: Watched) -> dict[str, tuple[str, int]]:
    return {one.key.name: (str(one.state), one.held) for one in board(watched).work}


@pytest.fixture
def busy(watched: Watched) -> Watched:
    """Two GPUs are taken by one job, two others wait for them, and a pod runs beside the queue."""

    def outlook_of(name: str) -> Outlook:
        return next(
            one.why.outlook for one in board(watched).work if one.key.name == name
        )

    watched.job("takes-all", gpus=2)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        wait_until(
            lambda: states(watched).get("takes-all", ("",))[0] == "running",
            what="it to run",
        )
        watched.job("next", gpus=2)
        wait_until(lambda: "next" in states(watched), what="the next job")
        watched.job("last", gpus=1)
        watched.job("never", gpus=16)
        wait_until(
            lambda: (
                states(watched).keys() == {"takes-all", "next", "last", "never"}
                and len(watched.copies("Workload")) == 4
                and all(
                    body["status"].get("conditions")
                    for body in watched.copies("Workload").values()
                )
                and outlook_of("never") == Outlook.CHANGE
            ),
            what="all of it",
        )
    return watched


@pytest.mark.slow
def test_what_runs_comes_first_and_what_waits_says_where_it_stands(
    busy: Watched,
) -> None:
    found = {one.key.name: one for one in board(busy).work}
    assert next(iter(found)) == "takes-all"
    # What waits stands in the order of its line.
    places = [
        one.why.position for one in found.values() if one.key.name in ("next", "last")
    ]
    assert places == sorted(place for place in places if place is not None)
    assert (
        found["takes-all"].state,
        found["takes-all"].held,
        found["takes-all"].why.what,
    ) == (
        "running",
        2,
        "It runs.",
    )
    assert found["takes-all"].flavors == ("a100",)
    waiting = [found["next"], found["last"]]
    for waits in waiting:
        assert (waits.state, waits.held) == ("waiting", 0)
        assert waits.why.position is not None
        # The one that can never start is in no line, and nobody stands behind it.
        assert f"number {waits.why.position + 1} of 2" in waits.why.line
        assert f"{waits.gpus} × A100" in waits.why.what
        assert waits.why.do
    assert len({one.why.position for one in [*waiting, found["never"]]}) == 3
    assert found["never"].why.outlook == "change"
    assert board(busy).held == 2


@pytest.mark.slow
def test_a_job_that_ends_is_over_and_the_next_one_runs(busy: Watched) -> None:
    with watching(busy.kubernetes):
        wait_until(is_read, what="everything to be listed")
        where = path(("batch/v1", "Job"), busy.namespace, "takes-all")
        busy.kubernetes.write("DELETE", f"{where}?propagationPolicy=Background")
        wait_until(
            lambda: bool(
                {states(busy)["next"], states(busy)["last"]}
                & {("running", 2), ("running", 1)}
            ),
            what="one that fits to run",
        )
        assert "takes-all" not in states(busy)


def test_pods_without_a_job_are_told_too(watched: Watched) -> None:
    container = {
        "name": "notebook",
        "image": "registry.example.com/notebook:1",
        "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1", "memory": "1Gi"}},
    }
    watched.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "by-hand",
                "namespace": watched.namespace,
                "labels": {"kueue.x-k8s.io/queue-name": "default"},
            },
            "spec": {"containers": [container]},
        }
    )
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        wait_until(
            lambda: states(watched).get("by-hand") == ("running", 2),
            what="the pod to run",
        )
        [found] = board(watched).work
        assert (found.key.kind, found.gpus, found.flavors) == ("Pod", 2, ("a100",))
        assert found.why.what == "It runs."


@pytest.mark.slow
def test_who_may_read_a_log_is_led_to_it_and_only_the_team_to_its_other_steps(
    busy: Watched,
) -> None:
    found = board(busy)
    one = replace(found.work[0], run=7)

    def step(action: Action, **may: bool) -> Any:
        lines = Lines(
            titles=defaultdict(str),
            tenancies=found.tenancies,
            flavors=found.flavors,
            now=timezone.now(),
            busy=found.busy,
            **may,
        )
        return lines.line(
            replace(one, why=replace(one.why, step=Step(action, "Show its logs")))
        )["step"]

    lead = {"may_stop": True, "may_ask": False}
    assert step(Action.SHOW_LOGS, **lead) == {
        "label": "Show its logs",
        "href": "/runs/7#logs",
    }
    assert step(Action.CHANGE_RUN, **lead) is None
    assert step(Action.CHANGE_RUN, may_stop=True, may_ask=True)
    assert step(Action.SHOW_LOGS, may_stop=False, may_ask=False) is None


@pytest.mark.slow
def test_until_everything_was_read_and_while_the_cluster_is_silent_it_says_so(
    busy: Watched,
) -> None:
    [seen] = board(busy).clusters
    assert seen.is_known
    assert seen.silent_since is None
    later = timezone.now() + timedelta(minutes=5)
    [seen] = work_of_team(busy.team, by=busy.ada, now=later).clusters
    assert seen.silent_since == seen.heard_at
    since = timezone.now() - timedelta(seconds=20)
    Feed.objects.filter(kind="Pod").update(silent_since=since, message="503: away")
    found = board(busy)
    assert found.clusters[0].silent_since is not None
    assert found.clusters[0].silent_since <= since
    assert {one.why.code for one in found.work} == {"cluster_silent"}
    # It is in the state and at the place in which it was seen last.
    places = {one.key.name: (str(one.state), one.why.position) for one in found.work}
    assert places.pop("takes-all") == ("running", None)
    # One can never start: it has the place that it would have, wherever that is, and is not counted.
    assert places.pop("never") in [("waiting", place) for place in range(3)]
    assert set(places.values()) == {("waiting", 0), ("waiting", 1)}
    page = Client()
    page.force_login(busy.ada)
    assert (
        "has said nothing since"
        in page.get(f"/teams/{busy.team.slug}/work").content.decode()
    )
    Feed.objects.filter(kind="Pod").update(listed_at=None, silent_since=None)
    assert not board(busy).clusters[0].is_known
    assert "has not read" in page.get(f"/teams/{busy.team.slug}/work").content.decode()


@pytest.mark.slow
def test_page_and_api_say_the_same_to_the_team_and_nothing_to_strangers(
    busy: Watched,
) -> None:
    caller = Caller(busy.ada)
    answer = caller.get(f"work/{busy.team.slug}/")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["team"]["slug"], told["held"], told["left_out"]) == (
        busy.team.slug,
        2,
        0,
    )
    assert [one["cluster"] for one in told["clusters"]] == ["training"]
    assert {one["name"]: one["state"] for one in told["work"]} == {
        "takes-all": "running",
        "next": "waiting",
        "last": "waiting",
        "never": "waiting",
    }
    page = Client()
    page.force_login(busy.ada)
    shown = page.get(f"/teams/{busy.team.slug}/work").content.decode()
    for one in told["work"]:
        assert one["name"] in shown
        assert one["why"]["what"].replace("'", "&#x27;") in shown
    assert "<bdi>takes-all</bdi>" in shown
    assert "Needs a change" in shown
    assert (
        "<bdi>takes-all</bdi>"
        not in page.get(f"/teams/{busy.team.slug}/work?show=waiting").content.decode()
    )
    assert (
        "Nothing has ended"
        in page.get(f"/teams/{busy.team.slug}/work?show=over").content.decode()
    )
    stranger, auditor = factories.person(), factories.person("", Role.AUDITOR)
    assert Caller(stranger).get(f"work/{busy.team.slug}/").status_code == 404
    assert Caller(auditor).get(f"work/{busy.team.slug}/").json()["work"] == told["work"]
    page.force_login(stranger)
    assert page.get(f"/teams/{busy.team.slug}/work").status_code == 404


@pytest.mark.slow
def test_a_view_takes_five_queries_after_a_change_and_three_without_one(
    busy: Watched, django_assert_num_queries: Any
) -> None:
    # Whoever waited for the work to be there has looked at it, and perhaps at its last change.
    cache.clear()
    kept_boards.at_hand.clear()
    assert not busy.ada.may(Permission.SEE_ALL_TEAMS)
    # At one moment: as time goes by, what was explained ends to hold, too.
    now = timezone.now()
    for queries in (5, 3):
        with django_assert_num_queries(queries):
            assert len(work_of_team(busy.team, by=busy.ada, now=now).work) == 4


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 50])
def test_page_and_api_take_as_many_queries_however_many_jobs_there_are(
    watched: Watched, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        watched.job(f"job-{number}", gpus=4)
    with watching():
        wait_until(
            lambda: is_read() and len(watched.copies("Workload")) == count,
            what="all to be copied",
        )
    caller, page = Caller(watched.ada), Client()
    page.force_login(watched.ada)
    for _ in range(2):
        assert len(caller.get(f"work/{watched.team.slug}/").json()["work"]) == count
        assert page.get(f"/teams/{watched.team.slug}/work").status_code == 200
    # Three of them find out who calls.
    with django_assert_num_queries(6):
        caller.get(f"work/{watched.team.slug}/")
    # Session, person and teams are asked for by every page; what waits for a decision stands in the frame alone.
    with django_assert_num_queries(7):
        page.get(f"/teams/{watched.team.slug}/work")
    with django_assert_num_queries(6):
        page.get(f"/teams/{watched.team.slug}/work", headers={"HX-Request": "true"})


def test_a_team_on_no_cluster_is_told_what_will_stand_there(db: None) -> None:
    team = factories.team()
    factories.join(team, team.created_by)
    page = Client()
    page.force_login(team.created_by)
    assert "On no cluster yet" in page.get(f"/teams/{team.slug}/work").content.decode()


@pytest.mark.slow
def test_what_is_left_unread_of_other_teams_changes_no_answer(
    busy: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(
        row: ClusterObject, name: str, *, namespace: str = "qm-speech", **changed: Any
    ) -> None:
        body = {
            **row.body,
            "metadata": {
                **row.body["metadata"],
                "name": name,
                "namespace": namespace,
                "uid": name,
            },
        }
        ClusterObject.objects.create(
            cluster=busy.cluster,
            kind=row.kind,
            namespace=namespace,
            name=name,
            body={**body, **changed},
        )

    admitted = ClusterObject.objects.get(
        kind="Workload", name__startswith="job-takes-all"
    )
    waits = ClusterObject.objects.get(kind="Workload", name__startswith="job-next")
    pod = ClusterObject.objects.get(kind="Pod", name__startswith="takes-all")
    spec, status = pod.body["spec"], pod.body["status"]
    theirs = {**admitted.body["status"]["admission"], "clusterQueue": "qm-speech"}
    add(waits, "they-wait")
    add(admitted, "they-run", status={**admitted.body["status"], "admission": theirs})
    add(admitted, "theirs-in-our-queue")
    add(pod, "they-take-room")
    add(pod, "their-phase-is-not-known", status={})
    add(pod, "theirs-ended", status={**status, "phase": "Succeeded"})
    add(
        pod,
        "theirs-has-no-node",
        spec={name: spec[name] for name in spec if name != "nodeName"},
    )
    read = {
        name
        for kinds in gathering._objects({busy.cluster.pk: {busy.namespace}}).values()
        for name in (
            text(part(one, "metadata"), "name")
            for rows in kinds.values()
            for one in rows
        )
    }
    assert {"theirs-in-our-queue", "they-take-room", "their-phase-is-not-known"} <= read
    assert not {"they-wait", "they-run", "theirs-ended", "theirs-has-no-node"} & read
    now = timezone.now()
    known = context_of(busy.team, sees_all=False, now=now)
    narrow = gathering.explained(known, now=now)

    def everything(namespaces: Mapping[int, set[str]]) -> Any:
        found: dict[int, Any] = {pk: defaultdict(list) for pk in namespaces}
        for row in ClusterObject.objects.filter(cluster__in=namespaces):
            if row.namespace in namespaces[row.cluster_id] or row.kind in SHARED:
                found[row.cluster_id][row.kind].append(row.body)
        return found

    monkeypatch.setattr(gathering, "_objects", everything)
    assert gathering.explained(known, now=now).work == narrow.work
    waiting = next(one for one in narrow.work if one.key.name == "next")
    assert (waiting.state, sum(one.held for one in narrow.work)) == ("waiting", 2)
