"""What a run can begin after, and what ends one that waits: servers, stops, and namespaces that are gone."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from fleet.models import Cluster
from provisioning.models import Tenancy
from tests import factories
from tests.pages import parsed
from tests.workloads.test_runs_after import after, end, place_of_team, refusal, submit
from workloads.models import Run
from workloads.runs import actions, following, sending
from workloads.runs.after import offered_before
from workloads.runs.pages.page import MOST_NEXT_RUNS

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db: None) -> User:
    return factories.person("Ada Okafor", teams=[factories.team("Vision")])


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    return place_of_team(ada)


def page(run: Run, by: User) -> str:
    browser = Client()
    browser.force_login(by)
    return str(parsed(browser.get(f"/runs/{run.pk}").content.decode()).words)


def test_nothing_begins_after_a_server_which_runs_until_it_is_stopped(
    tenancy: Tenancy, ada: User
) -> None:
    server = factories.run(tenancy, ada, limit_seconds=None)
    assert refusal(tenancy, ada, after(server)) == (
        "after",
        "run_never_finishes",
        f"Run {server.pk} runs until it is stopped, so it never finishes. Nothing can begin after it.",
    )
    assert offered_before(tenancy.team_id) == []
    assert "Run something after it" not in page(server, ada)


def test_nothing_begins_after_a_run_that_is_being_stopped(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    run = submit(tenancy, ada, after(first))
    actions.stop(first.pk, by=ada, now=timezone.now())
    assert refusal(tenancy, ada, after(first)) == (
        "after",
        "run_did_not_finish",
        f"Run {first.pk} is being stopped. Nothing can begin after it.",
    )
    assert [one.pk for one in offered_before(tenancy.team_id)] == [run.pk]
    assert "Run something after it" not in page(first, ada)


def test_once_more_it_is_sent_at_once_where_the_other_one_is_being_stopped(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    run = submit(tenancy, ada, after(first))
    actions.stop(first.pk, by=ada, now=timezone.now())
    again = actions.submit_again(run, by=ada, key="again", now=timezone.now())
    assert (again.state, again.after_id) == ("submitted", None)


def test_what_was_not_sent_ends_with_its_namespace_and_what_follows_is_skipped(
    tenancy: Tenancy, ada: User
) -> None:
    elsewhere = place_of_team(ada, "inference")
    first = submit(tenancy, ada)
    waits = submit(elsewhere, ada, after(first))
    unsent = submit(elsewhere, ada)
    last = submit(tenancy, ada, after(waits))
    factories.leave(elsewhere, to="gone", at=timezone.now(), kept=timedelta(days=30))
    following.follow(now=timezone.now, gone=lambda run_id: None)
    found = [Run.objects.get(pk=one.pk) for one in (first, waits, unsent, last)]
    assert [one.state for one in found] == ["submitted", "gone", "gone", "skipped"]
    assert found[1].message == "It ended with its namespace, which the team has left."


def test_nothing_is_sent_to_a_cluster_that_has_come_to_follow_git_meanwhile(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    run = submit(tenancy, ada, after(first))
    last = submit(tenancy, ada, after(run))
    Cluster.objects.filter(pk=tenancy.cluster_id).update(delivery="git")
    end(first, "finished")
    assert sending.look_after(run.pk, now=timezone.now)
    found = [Run.objects.get(pk=one.pk) for one in (run, last)]
    assert [one.state for one in found] == ["refused", "skipped"]
    words = "Training follows Git, and the portal starts nothing there. Use kubectl."
    assert found[0].message == words


def test_who_stops_a_run_reads_that_what_waits_for_it_is_skipped(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    said = "What waits for it is skipped: Evaluate."
    assert said not in page(first, ada)
    run = submit(tenancy, ada, after(first))
    assert said in page(first, ada)
    actions.stop(run.pk, by=ada, now=timezone.now())
    assert said not in page(first, ada)


def test_of_many_that_begin_after_a_run_those_that_wait_are_shown_first(
    tenancy: Tenancy, ada: User
) -> None:
    now = timezone.now()
    first = factories.run(tenancy, ada)
    for _ in range(MOST_NEXT_RUNS):
        factories.run(
            tenancy, ada, after=first, state="gone", created_at=now, ended_at=now
        )
    factories.run(tenancy, ada, title="Evaluate", state="blocked", after=first)
    said = page(first, ada)
    assert "What waits for it is skipped: Evaluate." in said
