"""Nothing costs before it is there, and everything that a team holds stands together, whatever makes it."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from allocations import actions as allocations
from allocations import provisioners
from allocations.budgets.money import month_of
from allocations.budgets.months import budget_of, pace_of
from allocations.ends import sweep as ends
from allocations.ends.actions import give_back
from allocations.models import Allocation, LedgerEntry, Leftover
from allocations.notices import ending_notice
from allocations.schedule import Provisioner, State
from allocations.use import measuring as use
from approvals.decisions import actions as decisions
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from approvals.requests.presenting import cost_per_day, state_of
from approvals.states import State as Stage
from fleet.models import Cluster
from manual.models import Task
from notebooks.servers import actions as notebooks
from notebooks.servers.reconcile import move
from notebooks.servers.states import State as Server
from provisioning.models import Tenancy
from tests import factories
from tests.approvals.shop import granted, later, task_of
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, REASON, Scene, books, ledger

NOTE = "It is there."
SECOND = timedelta(seconds=1)


def held_for(asked: Request) -> Allocation:
    """What is held under a request."""
    return Allocation.objects.live().get(hold=asked.hold_id)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["endpoint", "openai", "reservation", "cluster"])
def test_what_a_person_makes_costs_from_when_it_is_there(
    scene: Scene, key: str
) -> None:
    asked = granted(scene, key)
    held = held_for(asked)
    whole = scene.held_usd()
    assert held.provisioner == Provisioner.MANUAL
    assert provisioners.state_of(held, now=later(days=1)) is State.SETTING_UP
    assert held.usd_so_far(later(days=1)) == 0
    assert cost_per_day(scene.team.pk) == 0
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=later(days=1))
    held.refresh_from_db()
    assert held.charged_from == later(days=1)
    assert held.usd_so_far(later(days=2)) == pytest.approx(
        held.usd_per_day, abs=Decimal("0.01")
    )
    assert scene.held_usd() == pytest.approx(whole * 2 / 3, abs=Decimal("0.01"))
    assert cost_per_day(scene.team.pk) == held.usd_per_day > 0
    assert books(scene.team) == ledger(scene.team)


def test_what_nobody_made_until_its_end_has_cost_nothing(scene: Scene) -> None:
    asked = granted(scene, "endpoint")
    ends.sweep(held_for(asked).kept_until)
    assert scene.held_usd() == 0
    assert scene.allocated() == 0
    assert Allocation.objects.get(hold=asked.hold_id).usd_in_all == 0


def test_gpus_that_nobody_can_use_yet_are_not_idle(scene: Scene) -> None:
    granted(scene, "endpoint")
    tenancy = Tenancy.objects.get(pk=scene.tenancy.pk)
    Tenancy.objects.filter(pk=tenancy.pk).update(used={}, used_at=later(hours=2))
    assert use.due() == []
    assert not use.sample(tenancy.pk)
    place, now = (tenancy.pk, scene.flavor.pk), later(hours=2)
    assert use.of_all_held({place: 2}, now=now)[place].since is None


@pytest.mark.slow
def test_a_renewal_of_what_nobody_made_yet_costs_nothing_either(scene: Scene) -> None:
    first = granted(scene, "endpoint")
    longer = renewing.wanted(
        first, until=first.until + DAY, reason=REASON, now=later(hours=1)
    )
    second = submit(longer, by=scene.ada, now=later(hours=1))
    for lead in (scene.priya, scene.elena):
        row = Request.objects.get(pk=second.pk)
        if row.state == Stage.WAITING:
            decisions.approve(
                row.pk, by=lead, expected_version=row.version, now=later(hours=1)
            )
    held = held_for(second)
    assert (held.charged_from, held.provisioner) == (None, Provisioner.MANUAL)
    row = Request.objects.with_allocation().select_related("tenancy").get(pk=second.pk)
    assert state_of(row, now=later(hours=2)) is Stage.SETTING_UP
    fulfilment.finish(task_of(first).pk, by=scene.priya, note=NOTE, now=later(hours=3))
    assert held_for(second).charged_from == later(hours=3)


@pytest.mark.slow
def test_a_renewal_of_what_cannot_be_made_is_let_go_with_it(scene: Scene) -> None:
    first = granted(scene, "endpoint")
    longer = renewing.wanted(
        first, until=first.until + DAY, reason=REASON, now=later(hours=1)
    )
    second = submit(longer, by=scene.ada, now=later(hours=1))
    for lead in (scene.priya, scene.elena):
        row = Request.objects.get(pk=second.pk)
        if row.state == Stage.WAITING:
            decisions.approve(
                row.pk, by=lead, expected_version=row.version, now=later(hours=1)
            )
    fulfilment.finish(
        task_of(first).pk,
        by=scene.priya,
        note="No image.",
        failed=True,
        now=later(hours=3),
    )
    assert not Allocation.objects.live().exists()
    assert scene.allocated() == 0
    assert scene.held_usd() == 0


def test_what_a_cluster_cannot_be_told_costs_from_when_it_has_it(scene: Scene) -> None:
    Cluster.objects.update(reachable=False)
    asked = granted(scene, "gpus")
    assert held_for(asked).charged_from is None
    assert allocations.not_charged_yet(later(hours=6)) == []
    Cluster.objects.update(reachable=True)
    factories.make_true(Tenancy.objects.get(pk=scene.tenancy.pk))
    assert allocations.not_charged_yet(later(hours=6)) == [asked.allocation_id]
    assert allocations.observe(held_for(asked).pk, now=later(hours=6))
    assert held_for(asked).charged_from == later(hours=6)
    assert allocations.not_charged_yet(later(hours=6)) == []
    assert (
        LedgerEntry.objects.filter(
            hold=asked.hold, why="costs from when it is there", usd=-6
        ).count()
        == 1
    )
    assert not allocations.observe(held_for(asked).pk, now=later(hours=7))


def test_a_part_that_stays_of_what_nobody_made_costs_nothing(scene: Scene) -> None:
    asked = granted(scene, "endpoint")
    give_back(held_for(asked).pk, gpus=1, by=scene.ada, now=later(hours=1))
    rest = held_for(asked)
    assert (rest.gpus, rest.charged_from, rest.offering) == (1, None, "endpoint")
    assert rest.usd_so_far(later(days=2)) == 0


def test_where_the_month_leads_counts_everything_that_costs(scene: Scene) -> None:
    asked = granted(scene, "volume", gib=1000)
    seen = pace_of(budget_of(scene.team, month_of(NOW)), now=later(days=1))
    assert seen is not None
    assert seen.usd.spent == held_for(asked).usd_so_far(later(days=1)) > 0


@pytest.mark.slow
def test_the_team_page_shows_everything_that_is_held(
    scene: Scene, client: Client
) -> None:
    now = timezone.now()
    for key in ("gpus", "volume", "openai", "reservation", "namespace"):
        granted(scene, key, now=now)
    fulfilment.finish(
        Task.objects.get(offering="openai").pk,
        by=scene.priya,
        note=NOTE,
        now=now + HOUR,
    )
    client.force_login(scene.ada)
    page = client.get(reverse("team", args=[scene.team.slug]))
    words = {row.what: (row.word, row.is_charged) for row in page.context["holdings"]}
    assert words["100 GiB volume corpus"] == ("Setting up", True)
    assert words["1 × Standard_NC4as_T4_v3 reserved"] == ("Setting up", False)
    assert words["gpt-4o-mini with 2k tokens a minute"][1]
    assert words["Development namespace for main"][1]
    assert page.context["figures"]["usd_per_day"] == cost_per_day(scene.team.pk)
    assert page.context["figures"]["gpus"] == 1
    assert "once it is there" in page.content.decode()


def test_the_api_lists_everything_that_is_held(scene: Scene) -> None:
    asked, ada = granted(scene, "volume", now=timezone.now()), Caller(scene.ada)
    found = ada.get("allocations/?held=true").json()["results"]
    assert [
        (row["what"], row["where"], row["offering"], row["flavor"]) for row in found
    ] == [("100 GiB volume corpus", scene.flavor.cluster.title, "volume", None)]
    assert ada.get("allocations/?held=true&offering=gpus").json()["results"] == []
    assert (found[0]["state"], found[0]["charged_from"], found[0]["provisioner"]) == (
        "setting_up",
        found[0]["starts_at"],
        "kubernetes",
    )
    back = ada.post(f"allocations/{found[0]['id']}/give-back/", {})
    assert (back.status_code, back.json()["code"]) == (409, "no_gpus_to_give_back")
    assert held_for(asked).ended_at is None


def test_an_end_of_what_takes_no_gpus_is_reminded_of(scene: Scene) -> None:
    asked = granted(scene, "volume", until=NOW + 30 * DAY)
    held = held_for(asked)
    assert held.remind_at == asked.until - timedelta(days=7)
    said, _ = ending_notice(held, now=asked.until - timedelta(days=7))
    assert said.title == f"100 GiB volume corpus of {scene.team.name} ends in 7 days"
    assert "Ask for it again" in said.sentence


@pytest.mark.parametrize(
    ("provisioner", "without"),
    [
        ("azure", "Without that the portal deletes it in Azure."),
        ("manual", "Without that a platform lead asks, then takes it down."),
    ],
)
def test_a_reminder_says_who_takes_down_a_reservation(
    scene: Scene, provisioner: str, without: str
) -> None:
    held = held_for(granted(scene, "reservation", until=NOW + 30 * DAY))
    held.provisioner = provisioner
    said, _ = ending_notice(held, now=NOW + 23 * DAY)
    assert said.sentence.endswith(without)
    assert "book it from this end on" in said.sentence


def test_nothing_that_waits_for_a_person_is_called_self_service(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    page = client.get(reverse("catalogue")).content.decode()
    cards = page.split("<section")
    for name, is_self_service in (
        ("Production inference endpoint", False),
        ("Notebook", True),
        ("Dataset volume", True),
        ("Namespace", True),
    ):
        card = next(part for part in cards if f">{name}<" in part)
        assert ("Self-service" in card) is is_self_service


def test_what_ended_early_says_what_it_cost(scene: Scene) -> None:
    asked = granted(scene, "reservation", until=NOW + 10 * DAY)
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=later(days=2))
    fulfilment.release(asked.pk, by=scene.ada, now=later(days=4))
    cost = Allocation.objects.get(hold=asked.hold_id).usd_in_all
    assert cost == scene.held_usd() > 0


def test_home_offers_a_notebook_again_as_a_notebook(
    scene: Scene, client: Client
) -> None:
    granted(scene, "notebook")
    client.force_login(scene.ada)
    links = [line["href"] for line in client.get("/").context["again"]]
    assert len(links) == 1
    assert links[0].startswith("/requests/new/notebook?")
    assert "profile=pytorch" in links[0]


def stopped_before_it_came_up(scene: Scene) -> Allocation:
    """A notebook with a GPU that its owner stopped at once."""
    factories.make_true(scene.tenancy, at=NOW)
    asked = granted(scene, "notebook")
    row = Allocation.objects.get(hold=asked.hold_id)
    assert row.notebook_id is not None
    notebooks.stop(row.notebook_id, by=scene.ada, now=NOW + SECOND)
    return row


def stop_it(row: Allocation, *, at: datetime) -> None:
    assert row.notebook_id is not None
    assert move(row.notebook_id, Server.STOPPED, seen=Server.STOPPING, now=at)


def observe_all(now: datetime) -> None:
    for pk in allocations.not_charged_yet(now):
        allocations.observe(pk, now=now)


def test_a_notebook_that_was_stopped_before_it_came_up_costs_from_then_on(
    scene: Scene,
) -> None:
    row = stopped_before_it_came_up(scene)
    observe_all(NOW + HOUR)
    row.refresh_from_db()
    assert (row.ended_at, row.charged_from) == (None, NOW + HOUR)
    stop_it(row, at=NOW + 2 * HOUR)
    notebooks.remove(row.notebook_id or 0, by=scene.ada)
    observe_all(NOW + 3 * HOUR)
    row.refresh_from_db()
    # As of any notebook that was removed: its GPUs are the team's until they are given back.
    assert (row.ended_at, row.charged_from) == (None, NOW + HOUR)
    assert row.usd_so_far(NOW + DAY) == row.usd_per_hour * 23


def test_the_gpus_of_a_notebook_that_was_removed_before_it_came_up_go_back(
    scene: Scene,
) -> None:
    row = stopped_before_it_came_up(scene)
    stop_it(row, at=NOW + 2 * SECOND)
    notebooks.remove(row.notebook_id or 0, by=scene.ada)
    observe_all(NOW + HOUR)
    row.refresh_from_db()
    assert (row.ended_at, row.end_reason) == (NOW + HOUR, "failed")
    assert "removed before it came up" in row.failure
    assert scene.allocated() == 0
    assert scene.held_usd() == 0
    assert books(scene.team) == ledger(scene.team)
    assert Tenancy.objects.get(pk=scene.tenancy.pk).desired.gpus() == 0
    # What else may run on them is looked for, as after every end.
    assert Leftover.objects.filter(allocation=row, gpus=1).exists()


def test_the_gpus_of_a_notebook_that_did_not_start_go_back_after_an_hour(
    scene: Scene,
) -> None:
    factories.make_true(scene.tenancy, at=NOW)
    asked = granted(scene, "notebook")
    row = Allocation.objects.get(hold=asked.hold_id)
    failed_at = NOW + 2 * HOUR
    assert move(
        row.notebook_id or 0,
        Server.FAILED,
        seen=Server.STARTING,
        now=failed_at,
        message="No such image.",
    )
    described = Allocation.objects.described().get(pk=row.pk)
    assert provisioners.status(described).message == (
        f"No such image. {provisioners.START_AGAIN}"
    )
    observe_all(failed_at + HOUR - SECOND)
    row.refresh_from_db()
    assert (row.ended_at, row.charged_from) == (None, None)
    observe_all(failed_at + HOUR)
    row.refresh_from_db()
    assert (row.ended_at, row.end_reason) == (failed_at + HOUR, "failed")
    assert row.failure == (
        "No such image. It was not started again within an hour, so its GPUs went back."
    )
    assert scene.allocated() == 0
    assert scene.held_usd() == 0


def test_a_notebook_that_is_started_again_within_the_hour_keeps_its_gpus(
    scene: Scene,
) -> None:
    factories.make_true(scene.tenancy, at=NOW)
    asked = granted(scene, "notebook")
    row = Allocation.objects.get(hold=asked.hold_id)
    pk = row.notebook_id or 0
    assert move(
        pk, Server.FAILED, seen=Server.STARTING, now=NOW + SECOND, message="No room."
    )
    notebooks.start(pk, by=scene.ada, now=NOW + 2 * SECOND)
    observe_all(NOW + 2 * HOUR)
    row.refresh_from_db()
    assert (row.ended_at, row.charged_from) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("again", "is_paid_for"), [(HOUR - SECOND, False), (HOUR, True)]
)
def test_a_notebook_that_is_started_again_after_an_hour_is_paid_for_if_it_comes_up_or_not(
    scene: Scene, again: timedelta, is_paid_for: bool
) -> None:
    row = Allocation.objects.get(hold=granted(scene, "notebook").hold_id)
    factories.make_true(Tenancy.objects.get(pk=scene.tenancy.pk), at=NOW)
    server, failed_at = row.notebook, NOW + HOUR / 2
    assert server is not None
    assert move(
        server.pk, Server.FAILED, seen=Server.STARTING, now=failed_at, message="No."
    )
    notebooks.start(server.pk, by=scene.ada, now=server.created_at + again)
    observe_all(NOW + 2 * HOUR)
    row.refresh_from_db()
    assert row.charged_from == (NOW + 2 * HOUR if is_paid_for else None)


def test_it_is_not_paid_for_before_its_gpus_are_on_the_cluster(scene: Scene) -> None:
    row = Allocation.objects.get(hold=granted(scene, "notebook").hold_id)
    pk = row.notebook_id or 0
    assert move(pk, Server.FAILED, seen=Server.STARTING, now=NOW + HOUR, message="No.")
    notebooks.start(pk, by=scene.ada, now=NOW + HOUR + SECOND)
    observe_all(NOW + 2 * HOUR)
    row.refresh_from_db()
    assert (row.ended_at, row.charged_from) == (None, None)


def test_what_ended_before_its_notebook_was_removed_has_not_failed(
    scene: Scene,
) -> None:
    row = stopped_before_it_came_up(scene)
    stop_it(row, at=NOW + 2 * SECOND)
    give_back(row.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    notebooks.remove(row.notebook_id or 0, by=scene.ada)
    described = Allocation.objects.described().get(pk=row.pk)
    assert provisioners.state_of(described, now=NOW + DAY) is State.ENDED
