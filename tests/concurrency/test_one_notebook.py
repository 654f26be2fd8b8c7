"""Notebooks that somebody launches or starts at the same moment: each is there once, and no more run than may."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import User
from approvals.decisions import actions as decisions
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from audit.models import Event
from fleet.models import Flavor
from notebooks.hubs.actions import disconnect
from notebooks.models import Hub, NotebookServer
from notebooks.servers import actions
from notebooks.servers.reconcile import reconcile
from notebooks.servers.states import State
from provisioning.models import Tenancy
from tests import factories
from tests.concurrency.together import held_up, together
from tests.notebooks.hub_server import HubOfTests
from tests.notebooks.test_servers import (
    ada,
    hub,
    hub_server,
    launch,
    lead,
    standing,
    tenancy,
    worked_on,
)
from web.refusals import Conflict

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["ada", "hub", "hub_server", "lead", "standing", "tenancy"]
ROUNDS = 5


@pytest.mark.slow
def test_the_same_launch_twice_at_once_is_one_server_and_one_call_of_the_hub(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    for number in range(ROUNDS):
        key = f"round-{number}"
        together(*[partial(launch, tenancy, ada, key=key)] * 2)

        server = NotebookServer.objects.latest("id")
        assert NotebookServer.objects.count() == number + 1
        assert (
            Event.objects.filter(
                kind="notebook.launched", subject_id=str(server.pk)
            ).count()
            == 1
        )
        together(*[partial(reconcile, server.pk, now=timezone.now)] * 2)
        starts = [
            one
            for one in hub.calls
            if one.startswith("POST") and one.endswith(server.name)
        ]
        assert len(starts) == 1


@pytest.mark.slow
def test_launches_and_starts_at_once_never_go_beyond_what_one_person_may_run(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    outcomes: list[str] = []

    def start(server: NotebookServer) -> None:
        actions.start(server.pk, by=ada, now=timezone.now())

    def noted(action: Callable[[], object]) -> None:
        try:
            action()
        except Conflict as refused:
            outcomes.append(refused.code)
        else:
            outcomes.append("runs")

    stopped = worked_on(launch(tenancy, ada, profile="cpu", key="stopped"))
    actions.stop(stopped.pk, by=ada, now=timezone.now())
    assert worked_on(stopped).state == State.STOPPED
    for _ in range(actions.MAX_LIVE - 1):
        factories.notebook(tenancy, ada, gpus=0)
    for number in range(ROUNDS):
        outcomes.clear()
        others = [
            partial(launch, tenancy, ada, profile="cpu", key=f"{number}-{one}")
            for one in range(2)
        ]
        at_once: list[Callable[[], object]] = [partial(start, stopped), *others]
        together(*(partial(noted, one) for one in at_once))

        assert sorted(outcomes) == ["runs", "too_many_notebooks", "too_many_notebooks"]
        assert (
            NotebookServer.objects.live().filter(owner=ada).count() == actions.MAX_LIVE
        )
        newest = (
            NotebookServer.objects.live()
            .filter(owner=ada)
            .exclude(profile__slug="explore")
            .get()
        )
        actions.stop(newest.pk, by=ada, now=timezone.now())
        assert worked_on(newest).state == State.STOPPED


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, False])
def test_a_hub_where_something_starts_at_once_is_not_disconnected(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests, is_new: bool
) -> None:
    start, there = starting(tenancy, ada, is_new=is_new), Hub.objects.get()

    with pytest.raises(Conflict) as refused:
        held_up(partial(disconnect, there, by=lead, now=timezone.now()), by=start)

    assert refused.value.code == "notebooks_run"
    assert Hub.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, False])
def test_nothing_starts_at_a_hub_that_is_disconnected_at_once(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests, is_new: bool
) -> None:
    start, there = starting(tenancy, ada, is_new=is_new), Hub.objects.get()

    with pytest.raises(Conflict) as refused:
        held_up(start, by=partial(disconnect, there, by=lead, now=timezone.now()))

    assert refused.value.code == "no_hub"
    assert not NotebookServer.objects.live().exists()


def starting(tenancy: Tenancy, ada: User, *, is_new: bool) -> Callable[[], object]:
    """What launches a notebook, or starts a stopped one again."""
    if is_new:
        return partial(launch, tenancy, ada, profile="cpu")
    stopped = worked_on(launch(tenancy, ada, profile="cpu"))
    actions.stop(stopped.pk, by=ada, now=timezone.now())
    assert worked_on(stopped).state == State.STOPPED
    return partial(actions.start, stopped.pk, by=ada, now=timezone.now())


def test_what_is_granted_and_launched_at_once_never_goes_beyond_what_one_person_may_run(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    now, spec = (
        timezone.now(),
        {"flavor": "training/a100", "gpus": 1, "profile": "a100"},
    )
    until, why = now + timedelta(hours=5), "Look at the failed frames."
    wanted = resolve("notebook", spec, team=tenancy.team, until=until, reason=why)
    Flavor.objects.update(allocated=F("gpus_total"))
    asked = submit(wanted, by=ada, now=now)
    Flavor.objects.update(allocated=0)
    for _ in range(actions.MAX_LIVE - 1):
        factories.notebook(tenancy, ada, gpus=0)
    approve = partial(
        decisions.approve, asked.pk, by=lead, expected_version=asked.version, now=now
    )

    # Whoever grants it reads whose notebooks they are.
    with pytest.raises(Conflict, match="Ada Okafor runs 10 notebooks"):
        held_up(approve, by=partial(launch, tenancy, ada, profile="cpu", key="two"))

    asked.refresh_from_db()
    assert asked.state == "waiting"
    assert NotebookServer.objects.live().filter(owner=ada).count() == actions.MAX_LIVE
