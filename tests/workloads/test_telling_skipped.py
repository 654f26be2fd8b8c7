"""What is told of a chain of runs that is skipped: one mail to each person, one event of each run to webhooks."""

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from notices.message import MOST_FACTS
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.scene import Scene
from tests.scene import scene as make
from tests.subscribed import subscribe, told
from workloads.models import Run
from workloads.runs import ending
from workloads.runs.states import State

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene(db: None) -> Scene:
    return make()


def chain(tenancy: Tenancy, by: User, length: int, *, after: Run) -> list[Run]:
    """So many runs, each after the one before."""
    found: list[Run] = []
    for number in range(1, length + 1):
        before = found[-1] if found else after
        title = f"Step {number}"
        found.append(
            factories.run(tenancy, by, title=title, state="blocked", after=before)
        )
    return found


def fail(run: Run) -> None:
    assert ending.end(run.pk, State.REFUSED, now=timezone.now())


def mails(person: User) -> list[Notice]:
    return [*Notice.objects.filter(kind="run_ended", person=person).order_by("pk")]


def test_a_chain_that_is_skipped_is_one_mail_that_says_what_each_waited_for(
    scene: Scene,
) -> None:
    ben = factories.person("Ben Okafor", teams=[scene.tenancy.team])
    first = factories.run(scene.tenancy, ben, title="Train")
    second, third = chain(scene.tenancy, scene.ada, 2, after=first)
    fail(first)
    [mail] = mails(scene.ada)
    assert mail.message == {
        "title": "2 runs were skipped",
        "sentence": f"Run {first.pk}, Train, did not finish: refused by the cluster. What waited for it did not run.",
        "facts": [
            ["Team", scene.tenancy.team.name],
            ["Step 1", f"It waited for run {first.pk}, Train: refused by the cluster."],
            ["Step 2", f"It waited for run {second.pk}, Step 1: skipped."],
        ],
        "rules": [],
        "action": "Open that run",
    }
    assert mail.link == f"/runs/{first.pk}"
    assert len(mails(ben)) == 1
    assert third.after_id == second.pk


def test_each_person_is_told_of_their_own_alone(scene: Scene) -> None:
    ben = factories.person("Ben Okafor", teams=[scene.tenancy.team])
    first = factories.run(scene.tenancy, scene.ada, title="Train")
    chain(scene.tenancy, scene.ada, 2, after=first)
    [of_ben] = chain(scene.tenancy, ben, 1, after=first)
    fail(first)
    titles = [one.message["title"] for one in mails(scene.ada)]
    assert titles == ["Train: refused by the cluster", "2 runs were skipped"]
    [mail] = mails(ben)
    assert (mail.message["title"], mail.subject_id) == ("Step 1: skipped", of_ben.pk)


def test_of_a_long_chain_the_mail_names_the_first_and_counts_the_rest(
    scene: Scene,
) -> None:
    first = factories.run(scene.tenancy, scene.ada)
    chain(scene.tenancy, scene.ada, 30, after=first)
    fail(first)
    facts = mails(scene.ada)[-1].message["facts"]
    assert len(facts) == MOST_FACTS
    assert facts[-1] == ["And", "20 more"]


def test_webhooks_are_told_of_each_run(scene: Scene, settings: Any) -> None:
    subscribe(settings)
    first = factories.run(scene.tenancy, scene.ada)
    chain(scene.tenancy, scene.ada, 3, after=first)
    fail(first)
    assert told() == ["run.ended"] * 4
