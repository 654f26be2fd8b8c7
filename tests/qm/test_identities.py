"""A pipeline with no secret: its application's token from Entra ID is all that `qm` needs."""

import pytest
from django.utils import timezone

from accounts.identities.actions import add_identity
from accounts.models import Identity, Membership
from audit.events import Kind
from audit.models import Event
from sandbox.entra.pipelines import PIPELINE
from tests.qm.conftest import Signed
from tests.qm.test_runs import SHORT
from tests.sandbox.entra.pipelines import pipeline_token
from tests.sandbox.entra.running import Running
from workloads.models import Run


@pytest.mark.slow
def test_a_pipeline_starts_a_run_in_the_teams_name_with_its_workflows_token(
    busy: Signed, directory: Running
) -> None:
    team, ada = busy.watched.team, busy.watched.ada
    Membership.objects.filter(team=team, user=ada).update(part="lead")
    busy.terminal.environment["QM_TOKEN"] = pipeline_token(directory)
    refused = busy.terminal("list")
    assert refused.exit_code != 0
    assert "This application acts for no team." in refused.stderr
    add_identity(
        team=team,
        name="GitHub, main branch",
        client_id=PIPELINE.client_id,
        object_id=PIPELINE.principal_id,
        scope="run",
        by=ada,
        now=timezone.now(),
    )
    for _ in "ab":
        done = busy.terminal(*SHORT[:1], "--key", "4711-1", *SHORT[1:])
        assert done.exit_code == 0, done.stderr
    run = Run.objects.get()
    assert run.requester.name == f"{team.name} (pipelines)"
    waited = busy.terminal("wait", str(run.pk))
    assert waited.exit_code == 0, waited.stderr
    event = Event.objects.get(kind=Kind.RUN_SUBMITTED)
    assert (event.actor_kind, event.details["called_with"]) == (
        "pipelines",
        f"identity GitHub, main branch ({PIPELINE.principal_id})",
    )
    assert Identity.objects.get().last_used_at is not None
