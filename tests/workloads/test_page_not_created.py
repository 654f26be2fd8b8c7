"""What a run's page says of its manifests: that they were created, are when it is sent, or never were, and why."""

from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.pages import parsed
from tests.scene import Scene
from tests.scene import scene as make
from workloads.models import Run
from workloads.runs.after import refused_after
from workloads.runs.planning.words import follows_git_words

pytestmark = pytest.mark.django_db
NEVER = "What would have been created on the cluster"


@pytest.fixture
def scene(db: None) -> Scene:
    return make()


def page(run: Run) -> str:
    browser = Client()
    browser.force_login(run.requester)
    return str(parsed(browser.get(f"/runs/{run.pk}").content.decode()).words)


def ended(scene: Scene, state: str, at: datetime, **fields: Any) -> Run:
    return factories.run(
        scene.tenancy, scene.ada, state=state, ended_at=at, created_at=at, **fields
    )


def test_a_skipped_run_says_why_nothing_was_created(scene: Scene) -> None:
    first = factories.run(scene.tenancy, scene.ada)
    said = page(ended(scene, "skipped", timezone.now(), after=first))
    assert (
        "Nothing of it stands on the cluster, because the run that it waited for did not finish."
        in said
    )
    assert NEVER in said
    assert "What was created" not in said


def test_a_refused_run_says_that_the_cluster_did_not_take_it(scene: Scene) -> None:
    said = page(ended(scene, "refused", timezone.now()))
    assert (
        "Nothing of it stands on the cluster, because the cluster did not take it."
        in said
    )


def test_a_run_whose_cluster_follows_git_does_not_blame_the_cluster(
    scene: Scene,
) -> None:
    """It was never asked: the portal sends nothing there."""
    why = follows_git_words("Training")
    said = page(ended(scene, "refused", timezone.now(), message=why))
    assert (
        f"Nothing of it stands on the cluster, because that follows Git. {NEVER}"
        in (said)
    )
    assert why in said
    assert "did not take it" not in said
    assert "Not sent" in said
    assert "Refused by the cluster" not in said


def test_what_waited_for_a_run_that_git_kept_does_not_blame_the_cluster_either(
    scene: Scene,
) -> None:
    first = ended(
        scene, "refused", timezone.now(), message=follows_git_words("Training")
    )
    [refused] = refused_after(first.pk, first)
    assert refused.text == (
        f"Run {first.pk} did not finish: not sent. Nothing can begin after it."
    )


def test_a_run_that_was_stopped_before_it_was_sent_says_so(
    scene: Scene,
) -> None:
    now = timezone.now()
    stopped = {"stop_asked_at": now, "stop_asked_by": scene.ada}
    said = page(ended(scene, "stopped", now, **stopped))
    assert "because it was stopped before it was sent." in said


def test_a_run_that_waits_to_be_sent_says_what_is_created_then(scene: Scene) -> None:
    first = factories.run(scene.tenancy, scene.ada)
    said = page(factories.run(scene.tenancy, scene.ada, state="blocked", after=first))
    assert "What is created on the cluster when it is sent" in said
    assert "Nothing of it stands" not in said


def test_what_was_sent_was_created(scene: Scene) -> None:
    now = timezone.now()
    said = page(ended(scene, "gone", now, sent_at=now))
    assert "What was created on the cluster" in said
    assert "Nothing of it stands" not in said
