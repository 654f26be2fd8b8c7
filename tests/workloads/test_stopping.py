"""Work is stopped in the portal, whoever started it: by who may, once, and never another one of its name."""

from dataclasses import replace

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from fleet.models import Cluster
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, POD, Watched, is_read, watching
from tests.workloads.test_board import board
from tests.workloads.test_runs import submit
from web.refusals import Away, BadInput, Conflict, NoRight
from workloads.stopping import Target, stop_work


@pytest.fixture
def made(watched: Watched) -> Target:
    """A job that somebody made with kubectl."""
    watched.job("by-hand", gpus=2)
    found = watched.kubernetes.get(JOB, "by-hand", watched.namespace)
    assert found is not None
    return Target(
        cluster=watched.cluster.name,
        namespace=watched.namespace,
        kind="Job",
        name="by-hand",
        uid=found["metadata"]["uid"],
    )


def stop(watched: Watched, target: Target, *, by: User | None = None) -> None:
    stop_work(watched.team, target, by=by or watched.ada, now=timezone.now())


def test_a_job_of_the_team_goes_with_its_pods_and_asked_twice_it_is_the_same(
    watched: Watched, made: Target
) -> None:
    stop(watched, made)
    stop(watched, made)
    wait_until(lambda: not watched.kubernetes.names(POD), what="its pods to go")
    assert watched.kubernetes.get(JOB, "by-hand", watched.namespace) is None
    event = Event.objects.filter(kind="work.deleted").first()
    assert event is not None
    assert (event.details["work"], event.team_id) == ("Job by-hand", watched.team.pk)


def test_another_one_of_its_name_is_left_alone(watched: Watched, made: Target) -> None:
    with pytest.raises(Conflict, match="Another one has this name"):
        stop(watched, replace(made, uid="00000000-0000-4000-8000-000000000000"))
    assert watched.kubernetes.get(JOB, "by-hand", watched.namespace) is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "Namespace"}, "Use kubectl"),
        ({"kind": "ConfigMap"}, "Use kubectl"),
        ({"namespace": "kube-system"}, "no such namespace"),
        ({"cluster": "elsewhere"}, "no such namespace"),
        ({"name": ""}, "Nothing there has this name"),
        ({"name": ".."}, "Nothing there has this name"),
        ({"name": "by-hand/status"}, "Nothing there has this name"),
        ({"uid": ""}, "Nothing there has this name and uid"),
    ],
)
def test_nothing_else_is_deleted(
    watched: Watched, made: Target, change: dict[str, str], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        stop(watched, replace(made, **change))
    assert watched.kubernetes.get(JOB, "by-hand", watched.namespace) is not None


def test_platform_leads_may_and_strangers_and_auditors_may_not(
    watched: Watched, made: Target
) -> None:
    for nobody in (
        factories.person("Mallory Finch"),
        factories.person("Sam Achebe", Role.AUDITOR),
    ):
        with pytest.raises(NoRight):
            stop(watched, made, by=nobody)
    stop(watched, made, by=factories.person("Priya Raman", Role.PLATFORM_LEAD))
    assert watched.kubernetes.get(JOB, "by-hand", watched.namespace) is None


def test_a_run_is_ended_as_a_run(watched: Watched, made: Target) -> None:
    run = submit(watched)
    stop(watched, replace(made, name=run.name))
    run.refresh_from_db()
    assert run.is_being_stopped


def test_on_a_cluster_that_follows_git_nothing_is_deleted(
    watched: Watched, made: Target
) -> None:
    run = submit(watched)
    Cluster.objects.filter(pk=watched.cluster.pk).update(delivery="git")
    with pytest.raises(Conflict, match="follows Git") as refused:
        stop(watched, made)
    assert refused.value.code == "follows_git"
    assert watched.kubernetes.get(JOB, "by-hand", watched.namespace) is not None
    assert not Event.objects.filter(kind="work.deleted").exists()
    # What it was given before is ended as a run.
    stop(watched, replace(made, name=run.name))
    run.refresh_from_db()
    assert run.is_being_stopped


def test_a_silent_cluster_is_said_to_be_silent(watched: Watched, made: Target) -> None:
    watched.kubernetes.fail(status=503)
    with pytest.raises(Away, match="503"):
        stop(watched, made)


@pytest.mark.slow
def test_page_and_api_stop_what_their_line_names(
    watched: Watched, made: Target, client: Client
) -> None:
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        wait_until(
            lambda: [one.key.name for one in board(watched).work] == ["by-hand"],
            what="its line",
        )
    client.force_login(watched.ada)
    page = client.get(f"/teams/{watched.team.slug}/work").content.decode()
    button = "/".join(vars(made).values())
    assert f'name="work" value="{button}"' in page
    Cluster.objects.filter(pk=watched.cluster.pk).update(delivery="git")
    page = client.get(f"/teams/{watched.team.slug}/work").content.decode()
    assert "by-hand" in page
    assert 'name="work"' not in page
    refused = Caller(watched.ada).send(
        "POST", f"work/{watched.team.slug}/stop/", vars(made)
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "follows_git")
    Cluster.objects.filter(pk=watched.cluster.pk).update(delivery="apply")
    where = f"/teams/{watched.team.slug}/work/stop"
    for strange in ("", button.rpartition("/")[0], f"{button}/more"):
        assert (
            "is no piece of work"
            in client.post(where, {"work": strange}, follow=True).content.decode()
        )
    answer = client.post(where, {"work": button}, follow=True)
    assert "by-hand is being stopped." in answer.content.decode()
    assert watched.kubernetes.get(JOB, "by-hand", watched.namespace) is None
    said = Caller(watched.ada).send(
        "POST", f"work/{watched.team.slug}/stop/", vars(made)
    )
    assert said.status_code == 200
