"""What people carry out: taken, given, done or impossible, and what becomes of money and GPUs."""

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from accounts.roles import Role
from allocations.budgets import balances as budgets
from allocations.ends import sweep as ends
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from approvals.requests.presenting import state_of
from approvals.states import State
from audit.models import Event
from checks.work import ends_are_seen_to
from manual import actions as task_actions
from manual.models import Task
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.approvals.shop import BY_PERSON, SPECS, approve, granted, later, task_of
from tests.scene import DAY, NOW, Scene, books, ledger
from ui.amounts import moment
from web.refusals import BadInput, Conflict, NoRight, Stale

NOTE = "Stands in the team's namespace as pvc/corpus."


def renewed(scene: Scene, asked: Request, *, gpus: int) -> Allocation:
    """A week more for some of the GPUs of an endpoint; the others stay until their own end."""
    row = Request.objects.select_related("team", "flavor__cluster").get(pk=asked.pk)
    until, reason = asked.until + 7 * DAY, "The pilot goes on."
    wanted = renewing.wanted(row, until=until, reason=reason, now=later(hours=2))
    again = submit(wanted, by=scene.ada, now=later(hours=2))
    approve(again, by=(scene.priya, scene.elena), now=later(hours=2), count=gpus)
    return Allocation.objects.live().get(hold=again.hold_id, gpus=gpus)


def stage(asked: Request, *, at: float = 1) -> State:
    """The state that people see, so many minutes after the scene's moment."""
    row = Request.objects.with_allocation().select_related("tenancy").get(pk=asked.pk)
    return state_of(row, now=later(minutes=at))


@pytest.mark.slow
@pytest.mark.parametrize("key", SPECS)
def test_every_offering_is_granted_and_the_work_of_people_becomes_a_task(
    scene: Scene, key: str
) -> None:
    asked = granted(scene, key)
    assert asked.state == State.APPROVED
    assert Task.objects.filter(request_number=asked.pk).exists() == (key in BY_PERSON)
    held = Allocation.objects.live().get(hold=asked.hold_id)
    assert (held.offering, held.flavor_id, held.until) == (
        key,
        asked.flavor_id,
        asked.until,
    )
    assert (held.charged_from is None) == (key in (*BY_PERSON, "notebook"))
    assert all(month.agrees for month in budgets.replay(scene.team))
    assert stage(asked) is State.SETTING_UP


def test_a_namespace_is_made_on_the_other_cluster(scene: Scene) -> None:
    granted(scene, "namespace")
    made = Tenancy.objects.get(team=scene.team, cluster__name="dev")
    assert made.environment == "dev"
    assert made.generation > made.observed_generation


def test_a_task_is_taken_carried_out_and_told(scene: Scene) -> None:
    asked = granted(scene, "openai")
    task = task_of(asked)
    task_actions.take(task.pk, to=scene.priya, by=scene.priya, now=later(hours=1))
    assert (task_of(asked).state, task_of(asked).assignee) == ("taken", scene.priya)
    fulfilment.finish(task.pk, by=scene.priya, note=NOTE, now=later(hours=2))
    assert task_of(asked).state == "done"
    assert stage(asked, at=180) is State.ACTIVE
    told = Notice.objects.get(kind="task_done")
    assert (told.person, told.link) == (scene.ada, f"/requests/{asked.pk}/")
    assert NOTE in told.message["sentence"]
    kinds = list(
        Event.objects.about("request", asked.pk)
        .order_by("seq")
        .values_list("kind", flat=True)
    )
    assert kinds[-2:] == ["task.assigned", "task.done"]


def test_who_is_given_a_task_is_told_and_who_takes_one_is_not(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    task_actions.take(task.pk, to=scene.priya, by=scene.priya, now=NOW)
    assert not Notice.objects.filter(kind="task_assigned").exists()
    task_actions.take(task.pk, to=scene.marcus, by=scene.priya, now=NOW)
    told = Notice.objects.get(kind="task_assigned")
    assert (told.person, told.link) == (scene.marcus, f"/tasks/{task.pk}/")
    assert [
        "To do",
        "Deploy gpt-4o-mini with 2k tokens a minute in eastus, for the team’s group.",
    ] in (told.message["facts"])
    freed = task_actions.take(task.pk, to=None, by=scene.marcus, now=NOW)
    assert (freed.state, freed.assignee) == ("open", None)


def test_only_platform_leads_carry_out_and_only_to_them_it_is_given(
    scene: Scene,
) -> None:
    task = task_of(granted(scene, "openai"))
    for person in (scene.ada, scene.elena, scene.mallory):
        with pytest.raises(NoRight):
            task_actions.take(task.pk, to=person, by=person, now=NOW)
        with pytest.raises(NoRight):
            fulfilment.finish(task.pk, by=person, note=NOTE, now=NOW)
    with pytest.raises(BadInput) as refused:
        task_actions.take(task.pk, to=scene.ada, by=scene.priya, now=NOW)
    assert refused.value.field == "to"


def test_two_who_take_it_at_once_do_not_take_it_from_each_other(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    task_actions.take(
        task.pk, to=scene.priya, by=scene.priya, expected_version=1, now=NOW
    )
    with pytest.raises(Stale):
        task_actions.take(
            task.pk, to=scene.marcus, by=scene.marcus, expected_version=1, now=NOW
        )
    with pytest.raises(Stale):
        fulfilment.finish(
            task.pk, by=scene.marcus, note=NOTE, expected_version=1, now=NOW
        )


def test_a_task_ends_once_and_with_a_word(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    with pytest.raises(BadInput) as refused:
        fulfilment.finish(task.pk, by=scene.priya, note="  ", now=NOW)
    assert refused.value.field == "note"
    fulfilment.finish(task.pk, by=scene.priya, note=NOTE, now=NOW)
    with pytest.raises(Conflict):
        fulfilment.finish(task.pk, by=scene.priya, note=NOTE, failed=True, now=NOW)
    with pytest.raises(Conflict):
        task_actions.take(task.pk, to=scene.marcus, by=scene.marcus, now=NOW)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["openai", "reservation", "cluster"])
def test_what_cannot_be_carried_out_costs_nothing(scene: Scene, key: str) -> None:
    asked = granted(scene, key)
    assert scene.held_usd() > 0
    fulfilment.finish(
        task_of(asked).pk,
        by=scene.priya,
        note="No capacity.",
        failed=True,
        now=later(hours=1),
    )
    assert scene.held_usd() == 0
    assert books(scene.team) == ledger(scene.team)
    assert stage(asked) is State.FAILED
    assert stage(asked, at=60 * 24 * 30) is State.FAILED
    assert (
        "What was set aside for it is free again."
        in Notice.objects.get(kind="task_done").message["sentence"]
    )


def test_what_cannot_be_carried_out_gives_its_gpus_back(scene: Scene) -> None:
    asked = granted(scene, "endpoint")
    gpus = asked.gpus
    assert scene.allocated() == gpus
    fulfilment.finish(
        task_of(asked).pk,
        by=scene.priya,
        note="No image.",
        failed=True,
        now=later(hours=1),
    )
    assert scene.allocated() == 0
    assert scene.held_usd() == 0
    assert books(scene.team) == ledger(scene.team)
    assert stage(asked) is State.FAILED


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", ["volume", "namespace", "openai", "reservation", "cluster"]
)
def test_at_its_end_it_is_asked_to_be_taken_down(scene: Scene, key: str) -> None:
    asked = granted(scene, key)
    if key in BY_PERSON:
        fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=NOW)
    cost = scene.held_usd()
    assert [ends.sweep(at) for at in (asked.until - DAY, asked.until, asked.until)] == [
        0,
        1,
        0,
    ]
    down = task_of(asked, "take_down")
    assert (down.state, down.created_at) == ("open", asked.until)
    assert scene.held_usd() == cost
    assert stage(asked, at=60 * 24 * 4) is State.ENDED
    fulfilment.finish(
        down.pk, by=scene.marcus, note="Gone.", failed=False, now=later(days=4)
    )
    assert Task.objects.of_request(asked.pk).filter(kind="take_down").count() == 1
    assert list(ends_are_seen_to(later(days=9))) == []


def test_who_carries_it_out_is_told_how_many_gpus_are_still_kept_for_it(
    scene: Scene,
) -> None:
    asked = granted(scene, "endpoint")
    held = Allocation.objects.live().get(hold=asked.hold_id)
    assert held.gpus > 1
    give_back(held.pk, gpus=1, by=scene.ada, now=later(hours=1))
    assert ("GPUs still kept for it", str(held.gpus - 1)) in task_of(asked).lines


def test_an_endpoint_is_taken_down_when_its_gpus_have_gone_back(scene: Scene) -> None:
    asked = granted(scene, "endpoint")
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=NOW)
    held = Allocation.objects.live().get(hold=asked.hold_id)
    give_back(held.pk, gpus=None, by=scene.ada, now=later(hours=1))
    assert task_of(asked, "take_down").state == "open"


@pytest.mark.slow
def test_an_endpoint_that_goes_on_in_part_is_taken_down_at_the_end_of_the_renewal(
    scene: Scene,
) -> None:
    asked = granted(scene, "endpoint")
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=later(hours=1))
    old = Allocation.objects.live().get(hold=asked.hold_id)
    new = renewed(scene, asked, gpus=1)
    assert expire(old.pk, now=old.kept_until)
    assert not Task.objects.filter(kind=Task.Kind.TAKE_DOWN).exists()
    assert list(ends_are_seen_to(old.kept_until + DAY)) == []
    assert expire(new.pk, now=new.kept_until)
    down = Task.objects.get(kind=Task.Kind.TAKE_DOWN)
    assert down.request_number == new.hold.request_id
    assert list(ends_are_seen_to(new.kept_until + DAY)) == []


@pytest.mark.slow
def test_an_endpoint_is_taken_down_at_its_old_end_when_its_renewal_went_back_before(
    scene: Scene,
) -> None:
    asked = granted(scene, "endpoint")
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=later(hours=1))
    old = Allocation.objects.live().get(hold=asked.hold_id)
    new = renewed(scene, asked, gpus=1)
    give_back(new.pk, gpus=None, by=scene.ada, now=later(hours=3))
    assert not Task.objects.filter(kind=Task.Kind.TAKE_DOWN).exists()
    assert expire(old.pk, now=old.kept_until)
    assert task_of(asked, "take_down").state == "open"


@pytest.mark.slow
def test_an_endpoint_that_goes_on_in_part_is_still_set_up_when_the_rest_has_ended(
    scene: Scene,
) -> None:
    asked = granted(scene, "endpoint")
    old = Allocation.objects.live().get(hold=asked.hold_id)
    new = renewed(scene, asked, gpus=1)
    assert (task_of(asked).state, task_of(asked).until) == ("open", new.until)
    # Both grants are there still, so all of its GPUs are.
    assert "GPUs still kept for it" not in dict(task_of(asked).lines)
    assert expire(old.pk, now=old.kept_until)
    assert (task_of(asked).state, task_of(asked).until) == ("open", new.until)
    assert ("GPUs still kept for it", "1") in task_of(asked).lines
    done_at = old.kept_until + DAY
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=done_at)
    new.refresh_from_db()
    assert new.charged_from == done_at


@pytest.mark.slow
def test_a_task_lasts_until_the_end_of_the_renewal_when_some_of_the_rest_goes_back(
    scene: Scene,
) -> None:
    asked = granted(scene, "endpoint", replicas=3)
    old = Allocation.objects.live().get(hold=asked.hold_id)
    new = renewed(scene, asked, gpus=1)
    give_back(old.pk, gpus=1, by=scene.ada, now=later(hours=3))
    assert task_of(asked).until == new.until
    assert ("GPUs still kept for it", "2") in task_of(asked).lines


def test_what_was_over_before_anybody_carried_it_out_has_cost_nothing(
    scene: Scene,
) -> None:
    asked = granted(scene, "openai")
    ends.sweep(asked.until)
    assert task_of(asked).state == "dropped"
    assert not Task.objects.filter(request_number=asked.pk, kind="take_down").exists()
    assert scene.held_usd() == 0
    assert stage(asked, at=60 * 24 * 4) is State.ENDED
    with pytest.raises(Conflict):
        fulfilment.finish(
            task_of(asked).pk, by=scene.priya, note=NOTE, now=later(days=4)
        )


def test_what_is_let_go_early_costs_until_then(scene: Scene) -> None:
    asked = granted(scene, "reservation", until=NOW + 10 * DAY)
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note=NOTE, now=NOW)
    whole = scene.held_usd()
    fulfilment.release(asked.pk, by=scene.ada, now=NOW + 5 * DAY)
    assert scene.held_usd() == whole / 2
    assert books(scene.team) == ledger(scene.team)
    assert task_of(asked, "take_down").state == "open"
    assert stage(asked, at=60 * 24 * 5 + 1) is State.ENDED
    with pytest.raises(Conflict):
        fulfilment.release(asked.pk, by=scene.ada, now=NOW + 5 * DAY)


@pytest.mark.slow
def test_who_may_let_go_and_of_what(scene: Scene) -> None:
    volume, cluster, gpus = (
        granted(scene, key) for key in ("volume", "cluster", "gpus")
    )
    with pytest.raises(NoRight):
        fulfilment.release(volume.pk, by=scene.mallory, now=later(hours=1))
    for asked, code in ((cluster, "not_reversible"), (gpus, "gpus_are_given_back")):
        with pytest.raises(Conflict) as refused:
            fulfilment.release(asked.pk, by=scene.ada, now=later(hours=1))
        assert refused.value.code == code


@pytest.mark.slow
def test_what_became_of_an_allocation_without_gpus_is_in_the_log(scene: Scene) -> None:
    made, failed = granted(scene, "reservation"), granted(scene, "openai")
    fulfilment.finish(task_of(made).pk, by=scene.priya, note=NOTE, now=later(hours=1))
    fulfilment.finish(
        task_of(failed).pk,
        by=scene.priya,
        note="No quota.",
        failed=True,
        now=later(hours=1),
    )
    ends.sweep(made.until)
    for asked, kinds in (
        (made, ["allocation.issued", "allocation.ready", "allocation.expired"]),
        (failed, ["allocation.issued", "allocation.failed"]),
    ):
        found = Event.objects.about("allocation", asked.allocation_id or 0).order_by(
            "seq"
        )
        assert list(found.values_list("kind", flat=True)) == kinds
        assert {event.details["what"] for event in found} == {asked.given_name}


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        {"state": "taken"},
        {"state": "done", "done_at": NOW},
        {"state": "failed"},
        {"state": "dropped"},
        {"kind": "dance"},
    ],
)
def test_the_database_keeps_tasks_whole(
    scene: Scene, broken: dict[str, object]
) -> None:
    task = task_of(granted(scene, "openai"))
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.filter(pk=task.pk).update(**broken)


def test_a_request_has_one_task_of_a_kind(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    task.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        task.save(force_insert=True)


def test_a_lead_who_lost_the_role_carries_nothing_out(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    former = factories.person("Former Lead", Role.TEAM_LEAD)
    with pytest.raises(NoRight):
        task_actions.take(task.pk, to=former, by=former, now=NOW)


def test_the_page_says_until_when_as_every_page_does(
    scene: Scene, client: Client
) -> None:
    task = task_of(granted(scene, "endpoint", now=timezone.now()))
    client.force_login(scene.priya)
    said = client.get(f"/tasks/{task.pk}/").content.decode()
    assert task.until is not None
    assert moment(task.until, timezone.now()) in said
