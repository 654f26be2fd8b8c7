"""What webhooks are told about runs."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from notices.channels.events import WebhookEvent
from tests import factories
from tests.calling import Caller
from tests.scene import scene as make
from tests.subscribed import last, subscribe, told
from workloads.runs import ending
from workloads.runs.states import State

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", [State.FINISHED, State.FAILED, State.GONE])
def test_the_end_of_every_run_is_told_once_however_short_it_was(
    settings: Any, state: State
) -> None:
    scene = make()
    now = timezone.now()
    run = factories.run(scene.tenancy, scene.ada, created_at=now - timedelta(minutes=1))
    subscribe(settings)
    assert ending.end(run.pk, state, now=now, message="Exit code 1 of token=abc")
    assert not ending.end(run.pk, state, now=now)
    assert told() == ["run.ended"]
    data, link = last(WebhookEvent.RUN_ENDED)
    assert link == f"/runs/{run.pk}"
    assert (data["state"], data["name"]) == (str(state), run.name)
    # What a cluster or a program says may hold anything.
    assert "token" not in str(data)
    shown = Caller(scene.priya).get(f"runs/{run.pk}/").json()
    assert data == {name: shown[name] for name in data}
