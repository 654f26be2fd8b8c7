"""Keeping GPUs longer: judged like any ask, and going on without a gap, without a moment at less and without twice."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from accounts.models import User
from allocations import actions as allocations
from allocations import renewals as renewable
from allocations.budgets import actions as budget_actions
from allocations.ends import actions as ends
from allocations.models import Allocation, LedgerEntry
from allocations.notices import ending_notice
from approvals import tasks
from approvals.conversation.actions import edit
from approvals.decisions import actions as deciding
from approvals.decisions.actions import approve, reject
from approvals.judging.inputs import coming
from approvals.models import Request
from approvals.policy_desk.simulator import simulate
from approvals.renewals import lowering, renewing
from approvals.renewals.words import extra_words, goes_on
from approvals.requests import actions as asking
from approvals.requests.actions import judge, submit, withdraw
from approvals.requests.page import sentence
from approvals.requests.preview import preview_of
from approvals.requests.wanted import Wanted
from approvals.states import State
from audit.models import Event
from fleet.models import Flavor
from notices.models import Notice
from policy.document import Policy, Thresholds
from policy.evaluation import Outcome
from provisioning.models import Tenancy
from tests import factories
from tests.approvals.given import given_lately
from tests.scene import DAY, HOUR, NOW, Scene, books, ledger
from tests.scene import scene as make
from tests.subscribed import subscribe, told
from web.refusals import BadInput, Conflict, NoRight

LATER = NOW + 2 * DAY
WIDE = Thresholds(
    automatic_gpus=24,
    window_gpus_team=1000,
    window_gpus_person=None,
    automatic_usd=Decimal(100_000),
    automatic_gpu_hours=None,
)
SHORT = replace(WIDE, automatic_days=3)


@pytest.fixture
def scene(db: None) -> Scene:
    made = make()
    factories.policy(WIDE, now=NOW - DAY)
    return made


def renewal(
    request: Request, *, until: datetime = NOW + 10 * DAY, now: datetime = LATER
) -> Wanted:
    found = Request.objects.select_related(
        "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    )
    return renewing.wanted(
        found.get(pk=request.pk), until=until, reason="It is not done yet.", now=now
    )


def renew(
    scene: Scene,
    request: Request,
    *,
    until: datetime = NOW + 10 * DAY,
    now: datetime = LATER,
) -> Request:
    return submit(renewal(request, until=until, now=now), by=scene.ada, now=now)


def live(request: Request) -> Allocation | None:
    return Allocation.objects.live().filter(hold=request.hold_id).first()


def set_aside(request: Request) -> Decimal:
    """The money that is set aside for a request by now."""
    rows = LedgerEntry.objects.filter(hold=request.hold_id)
    return sum((row.usd for row in rows), Decimal(0))


def waiting_renewal(scene: Scene) -> tuple[Request, Request, Allocation]:
    """Four GPUs that people decide to keep longer: what was granted, what waits, and what is held."""
    factories.policy(SHORT, now=NOW)
    first = scene.ask(4)
    second, held = renew(scene, first), live(first)
    assert held is not None
    return first, second, held


def test_webhooks_are_not_told_that_what_goes_on_is_there(
    scene: Scene, settings: Any
) -> None:
    first = scene.ask(4)
    subscribe(settings)
    renew(scene, first)
    assert sorted(told()) == ["allocation.ended", "request.approved"]


def test_an_automatic_renewal_goes_on_without_a_gap(scene: Scene) -> None:
    first = scene.ask(4)
    desired = Tenancy.objects.get(pk=scene.tenancy.pk)
    second = renew(scene, first)
    old, new = Allocation.objects.get(hold=first.hold_id), live(second)
    assert new is not None
    assert (second.state, second.renews_id, new.gpus) == (State.APPROVED, first.pk, 4)
    assert (old.end_reason, old.ended_at) == ("renewed", new.starts_at)
    assert (new.until, scene.allocated()) == (NOW + 10 * DAY, 4)
    after = Tenancy.objects.get(pk=scene.tenancy.pk)
    assert (after.generation, after.spec) == (desired.generation, desired.spec)
    # Two days under the first, eight under the second, and each day once.
    assert (
        sum(books(scene.team).values())
        == sum(ledger(scene.team).values())
        == Decimal(4 * 24 * 10)
    )
    assert list(
        Event.objects.filter(kind="allocation.renewed").values_list(
            "details__under", flat=True
        )
    ) == [second.reference]


def test_a_renewal_takes_nothing_from_a_pool_that_is_full(scene: Scene) -> None:
    first = scene.ask(4)
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=4)
    assert renew(scene, first).state == State.APPROVED
    assert scene.allocated() == 4


def test_not_even_vanished_nodes_end_what_is_renewed(scene: Scene) -> None:
    first = scene.ask(4)
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=2)
    assert renew(scene, first).state == State.APPROVED


def test_nor_do_they_where_somebody_has_booked_for_later(scene: Scene) -> None:
    first = scene.ask(4)
    starts = NOW + 60 * DAY
    where = factories.tenancy(factories.team(), scene.flavor.cluster)
    later = factories.granted(
        scene.priya, where, scene.flavor, gpus=1, until=starts + DAY
    )
    allocations.grant(
        replace(later, starts_at=starts), actor=scene.priya.as_actor(), now=NOW
    )
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=2)
    assert renew(scene, first).state == State.APPROVED


def test_the_money_that_is_set_aside_already_counts_for_it(scene: Scene) -> None:
    factories.policy(replace(WIDE, automatic_beyond_soft_budget=True), now=NOW)
    budget_actions.set_budget(
        scene.team,
        month=NOW.date().replace(day=1),
        limit_usd=Decimal(4 * 24 * 5),
        by=scene.priya,
    )
    first = scene.ask(4, days=4)
    second = renew(scene, first, until=NOW + 5 * DAY)
    assert second.state == State.APPROVED
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(480)}


def test_too_little_money_for_the_days_on_top_is_not_automatic(scene: Scene) -> None:
    budget_actions.set_budget(
        scene.team,
        month=NOW.date().replace(day=1),
        limit_usd=Decimal(4 * 24 * 5),
        by=scene.priya,
    )
    first = scene.ask(4, days=4)
    second = renew(scene, first, until=NOW + 6 * DAY)
    assert second.state == State.WAITING
    with pytest.raises(Conflict) as refused, transaction.atomic():
        approve(second.pk, by=scene.priya, expected_version=second.version, now=LATER)
    assert refused.value.code == "not_enough_budget"
    assert live(first) is not None


def test_while_people_decide_only_the_days_on_top_are_set_aside(scene: Scene) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(4)
    second = renew(scene, first)
    assert second.state == State.WAITING
    assert sum(books(scene.team).values()) == Decimal(4 * 24 * 10)
    assert live(first) is not None
    approve(
        second.pk, by=scene.priya, expected_version=second.version, now=LATER + HOUR
    )
    new = live(second)
    assert new is not None
    assert live(first) is None
    assert (new.starts_at, scene.allocated()) == (LATER + HOUR, 4)
    assert (
        sum(books(scene.team).values())
        == sum(ledger(scene.team).values())
        == Decimal(4 * 24 * 10)
    )


@pytest.mark.parametrize("ending", ["rejected", "withdrawn"])
def test_what_is_not_granted_leaves_the_old_end(scene: Scene, ending: str) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(1)
    second = renew(scene, first)
    if ending == "rejected":
        reject(
            second.pk,
            by=scene.priya,
            expected_version=second.version,
            reason="Not now.",
            now=LATER,
        )
    else:
        withdraw(second.pk, by=scene.ada, now=LATER)
    held = live(first)
    assert held is not None
    assert held.until == NOW + 3 * DAY
    assert books(scene.team) == ledger(scene.team)
    assert sum(books(scene.team).values()) == Decimal(72)
    assert ends.expire(held.pk, now=held.until)


def test_fewer_are_kept_longer_and_the_others_until_the_old_end(scene: Scene) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(4)
    second = renew(scene, first)
    approve(
        second.pk, by=scene.priya, expected_version=second.version, count=3, now=LATER
    )
    kept, rest = live(second), live(first)
    assert kept is not None
    assert rest is not None
    assert (kept.gpus, rest.gpus, rest.until, scene.allocated()) == (
        3,
        1,
        NOW + 3 * DAY,
        4,
    )
    assert sum(books(scene.team).values()) == Decimal(4 * 48 + 3 * 8 * 24 + 24)


def test_of_fewer_that_are_kept_longer_only_their_own_money_counts_as_there(
    scene: Scene,
) -> None:
    first, second, held = waiting_renewal(scene)
    fewer = replace(renewal(first), spec=second.asked.model_copy(update={"gpus": 3}))
    fewer = replace(
        fewer, size=fewer.spec.size(price=held.price_per_gpu_hour, prices={})
    )
    there = renewable.freed(held, gpus=3, now=LATER)
    assert sum(part.usd for part in there.values()) == Decimal(3 * 24)
    judged = judge(fewer, person=scene.ada, now=LATER, own=second.hold_id)
    assert "$504 of it come on top" in extra_words(fewer, judged, now=LATER)
    assert goes_on(fewer, now=LATER) == Decimal(3 * 24)
    approve(
        second.pk, by=scene.priya, expected_version=second.version, count=3, now=LATER
    )
    let_go = LedgerEntry.objects.filter(hold=first.hold_id, why="renewed")
    assert -sum(line.usd for line in let_go) == Decimal(3 * 24)


def test_what_reached_its_end_in_between_is_granted_anew(scene: Scene) -> None:
    _, second, held = waiting_renewal(scene)
    after = held.kept_until
    assert ends.expire(held.pk, now=after)
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=3)
    with pytest.raises(Conflict), transaction.atomic():
        approve(second.pk, by=scene.priya, expected_version=second.version, now=after)
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=4)
    assert renewing.void() == []
    approve(second.pk, by=scene.priya, expected_version=second.version, now=after)
    assert scene.allocated() == 4
    assert books(scene.team) == ledger(scene.team)


@pytest.mark.slow
def test_what_was_given_back_in_part_is_kept_longer_by_those_that_are_held(
    scene: Scene,
) -> None:
    first, second, held = waiting_renewal(scene)
    on_top = Decimal(4 * 24 * 7)
    assert set_aside(second) == on_top
    ends.give_back(held.pk, gpus=1, by=scene.ada, now=LATER)
    with (
        pytest.raises(Conflict, match="3 GPUs can be kept longer"),
        transaction.atomic(),
    ):
        approve(second.pk, by=scene.priya, expected_version=second.version, now=LATER)
    assert renewing.more_than_held(LATER) == [second.pk]
    assert [lowering.lower(second.pk, now=LATER) for _ in "ab"] == [True, False]
    second.refresh_from_db()
    assert (second.state, second.gpus_now, renewing.more_than_held(LATER)) == (
        State.WAITING,
        3,
        [],
    )
    assert set_aside(second) == on_top * 3 / 4
    assert books(scene.team) == ledger(scene.team)
    [told] = Notice.objects.filter(person=scene.ada, kind="request_commented")
    assert "3 GPUs are held since others were given back" in told.said.sentence
    [to_decider] = Notice.objects.filter(person=scene.priya, kind="request_commented")
    assert to_decider.said == told.said
    edited = Event.objects.filter(kind="request.edited")
    assert [(one.actor_name, one.details["changed"]) for one in edited] == [
        ("Quartermaster", ["GPUs: 4 → 3"])
    ]
    approve(second.pk, by=scene.priya, expected_version=second.version, now=LATER)
    kept = live(second)
    assert kept is not None
    assert (kept.gpus, live(first), scene.allocated()) == (3, None, 3)
    assert books(scene.team) == ledger(scene.team)


def test_the_task_lowers_what_would_keep_more_than_is_held(scene: Scene) -> None:
    now = timezone.now()
    factories.policy(SHORT, now=NOW)
    first = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=4, days=3, now=now - HOUR
    )
    second, held = renew(scene, first, until=now + 10 * DAY, now=now), live(first)
    assert held is not None
    ends.give_back(held.pk, gpus=1, by=scene.ada, now=now)
    tasks.withdraw_void()
    second.refresh_from_db()
    assert second.gpus_now == 3


def test_fewer_that_people_approve_of_what_is_held_need_no_lowering(
    scene: Scene,
) -> None:
    _, second, held = waiting_renewal(scene)
    ends.give_back(held.pk, gpus=1, by=scene.ada, now=LATER)
    approve(
        second.pk, by=scene.priya, expected_version=second.version, count=3, now=LATER
    )
    kept = live(second)
    assert kept is not None
    assert kept.gpus == 3
    assert not lowering.lower(second.pk, now=LATER)


def test_a_renewal_of_all_that_is_held_is_not_lowered(scene: Scene) -> None:
    _, second, _ = waiting_renewal(scene)
    assert renewing.more_than_held(LATER) == []
    assert not lowering.lower(second.pk, now=LATER)
    second.refresh_from_db()
    assert second.cut_to is None


def test_what_was_given_back_in_between_is_kept_by_nobody(scene: Scene) -> None:
    _, second, held = waiting_renewal(scene)
    ends.give_back(held.pk, gpus=1, by=scene.ada, now=LATER)
    assert renewing.void() == []
    ends.give_back(held.pk, gpus=None, by=scene.ada, now=LATER)
    with pytest.raises(Conflict, match="was given back"), transaction.atomic():
        approve(second.pk, by=scene.priya, expected_version=second.version, now=LATER)
    assert renewing.void() == [second.pk]
    with time_machine.travel(LATER, tick=False):
        tasks.withdraw_void()
        tasks.withdraw_void()
    second.refresh_from_db()
    why = "It was taken back, because what it would keep longer was given back."
    assert (second.state, second.withdrawn_because) == (State.WITHDRAWN, why)
    assert sentence(second, State.WITHDRAWN, [], now=LATER) == why
    [told] = Notice.objects.filter(person=scene.ada, kind="request_decided")
    assert told.message["sentence"] == why
    assert scene.allocated() == 0
    assert books(scene.team) == ledger(scene.team)


def test_what_is_given_back_while_it_is_approved_is_kept_by_nobody(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second, held = waiting_renewal(scene)
    locked = asking.locked

    def slower(asked: Wanted, *, owner: User, now: datetime) -> Wanted:
        ends.give_back(held.pk, gpus=None, by=scene.ada, now=LATER)
        return locked(asked, owner=owner, now=now)

    monkeypatch.setattr(deciding, "locked", slower)
    with pytest.raises(Conflict, match="was given back"):
        approve(second.pk, by=scene.priya, expected_version=second.version, now=LATER)


def test_the_page_offers_one_way_to_keep_what_a_waiting_request_would_keep(
    scene: Scene,
) -> None:
    first, second, held = waiting_renewal(scene)
    request = Request.objects.select_related("team", "flavor__cluster").get(pk=first.pk)
    soon = sentence(request, State.ENDING_SOON, [], now=LATER, renewal=second)
    assert "Keep them longer with one click" not in soon
    row = Allocation.objects.described().get(pk=held.pk)
    told, _ = ending_notice(row, now=LATER)
    assert f"Request {second.pk} to keep them longer waits" in told.sentence


@pytest.mark.slow
def test_giving_back_says_what_becomes_of_a_request_to_keep_it(
    scene: Scene, client: Client
) -> None:
    first, second, held = waiting_renewal(scene)
    client.force_login(scene.ada)
    with time_machine.travel(LATER, tick=False):
        all_of_it = client.get(f"/allocations/{held.pk}/give-back")
        part = client.get(f"/allocations/{held.pk}/give-back?gpus=1")
        team = client.get("/teams/vision/").content.decode()
        page = client.get(f"/requests/{first.pk}/").content.decode()
        waiting = client.get(f"/requests/{second.pk}/").content.decode()
    assert "is withdrawn with this" in all_of_it.content.decode()
    # As it is lowered by itself a moment later.
    assert "asks for no more than what stays" in part.content.decode()
    link = f"/requests/{second.pk}/"
    for shown in (team, page):
        assert link in shown
        assert f"/allocations/{held.pk}/renew" not in shown
    assert renewing.waits_words(second) in page
    assert "What is held goes back, if not approved" in waiting


def test_after_its_end_it_is_renewed_no_more(scene: Scene) -> None:
    first, ask = scene.ask(1), None
    with pytest.raises(Conflict) as refused:
        ask = renewal(first, now=NOW + 3 * DAY)
    assert (refused.value.code, ask) == ("not_held", None)
    assert "any more" in refused.value.message


def test_what_was_never_held_is_not_said_to_be_held_no_more(scene: Scene) -> None:
    waiting = scene.ask(8, days=60)
    with pytest.raises(Conflict, match="waits for a decision") as refused:
        renewal(waiting)
    assert refused.value.code == "not_held"
    withdraw(waiting.pk, by=scene.ada, now=NOW)
    with pytest.raises(Conflict, match="Nothing was granted"):
        renewal(Request.objects.get(pk=waiting.pk))


def test_of_a_renewal_and_an_end_one_comes_first(scene: Scene) -> None:
    first = scene.ask(1)
    wanted, held = renewal(first), live(first)
    assert held is not None
    ends.expire(held.pk, now=held.until)
    with pytest.raises(Conflict) as refused, transaction.atomic():
        submit(wanted, by=scene.ada, now=held.until)
    assert refused.value.code == "not_held"
    other = scene.ask(1)
    row = live(other)
    assert row is not None
    renew(scene, other)
    assert not ends.expire(row.pk, now=row.until)
    with pytest.raises(Conflict), transaction.atomic():
        ends.give_back(row.pk, gpus=None, by=scene.ada, now=LATER)


def test_in_its_grace_it_is_renewed_and_grace_stays_free(scene: Scene) -> None:
    first = scene.ask(1)
    Allocation.objects.update(grace_hours=2, kept_until=NOW + 3 * DAY + 2 * HOUR)
    at = NOW + 3 * DAY + HOUR
    renew(scene, first, until=NOW + 4 * DAY, now=at)
    assert sum(books(scene.team).values()) == Decimal(72 + 23)


def test_one_renewal_waits_at_a_time_whoever_writes(scene: Scene) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(1)
    waiting = renew(scene, first)
    with pytest.raises(Conflict) as refused, transaction.atomic():
        renew(scene, first)
    assert refused.value.code == "renewal_waits"
    other = scene.ask(1, days=9, now=LATER)
    assert other.state == State.WAITING
    with pytest.raises(IntegrityError), transaction.atomic():
        Request.objects.filter(pk=other.pk).update(renews=waiting.renews_id)
    with pytest.raises(IntegrityError), transaction.atomic():
        Request.objects.filter(pk=first.pk).update(renews=first.pk)


def test_the_preview_of_a_second_renewal_is_refused_like_the_renewal(
    scene: Scene,
) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(1)
    assert preview_of(renewal(first), by=scene.ada, now=LATER)["answer"]
    renew(scene, first)
    with pytest.raises(Conflict) as refused:
        preview_of(renewal(first), by=scene.ada, now=LATER)
    assert refused.value.code == "renewal_waits"


def test_an_earlier_end_and_strangers_are_refused(scene: Scene) -> None:
    first = scene.ask(1)
    for sooner in (2 * DAY, timedelta(seconds=1)):
        with pytest.raises(BadInput) as refused:
            renewal(first, until=first.until + renewing.SHORTEST - sooner)
        assert (refused.value.code, refused.value.field) == ("not_later", "until")
    assert renewal(first, until=first.until + renewing.SHORTEST).renews == first.pk
    with pytest.raises(NoRight):
        submit(renewal(first), by=scene.mallory, now=LATER)


def test_a_renewal_changed_while_it_waits_stays_of_its_kind(scene: Scene) -> None:
    h100 = factories.flavor(scene.flavor.cluster, "h100", gpus_total=2)
    factories.policy(SHORT, now=NOW)
    first = scene.ask(2)
    second = renew(scene, first)
    other = replace(renewal(first, until=LATER + 2 * DAY), flavor=h100)
    with pytest.raises(BadInput, match="stay of their kind"):
        edit(second.pk, other, by=scene.ada, expected_version=second.version, now=LATER)
    assert (scene.allocated(), live(first) is not None) == (2, True)


def test_a_renewal_is_not_changed_to_an_earlier_end_nor_when_nothing_is_held(
    scene: Scene,
) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(2)
    second = renew(scene, first)
    early = replace(renewal(first, until=LATER + 2 * DAY), until=LATER + DAY / 2)
    with pytest.raises(BadInput, match="later than the present"):
        edit(second.pk, early, by=scene.ada, expected_version=second.version, now=LATER)
    longer = renewal(first, until=LATER + 2 * DAY)
    ends.give_back(
        Allocation.objects.live().get().pk, gpus=None, by=scene.ada, now=LATER
    )
    with pytest.raises(Conflict, match="not held any more"):
        edit(
            second.pk, longer, by=scene.ada, expected_version=second.version, now=LATER
        )


def test_a_renewal_changed_while_it_waits_is_for_no_more_than_is_held(
    scene: Scene,
) -> None:
    """Of those on top the limits of GPUs without people, and what they cost from now on, would not be known."""
    factories.policy(SHORT, now=NOW)
    first = scene.ask(2)
    second = renew(scene, first)
    more = replace(scene.wanted(4, days=10), renews=None)
    with pytest.raises(BadInput) as refused:
        edit(second.pk, more, by=scene.ada, expected_version=second.version, now=LATER)
    assert (refused.value.code, refused.value.field) == ("only_what_is_held", "gpus")
    assert "2 GPUs can be kept longer" in refused.value.message
    fewer = scene.wanted(1, days=10)
    edited = edit(
        second.pk, fewer, by=scene.ada, expected_version=second.version, now=LATER
    )
    assert edited.gpus == 1


def test_what_is_held_of_another_kind_never_goes_over(scene: Scene) -> None:
    h100 = factories.flavor(scene.flavor.cluster, "h100")
    first = scene.ask(2)
    with transaction.atomic():
        assert (
            allocations.hand_over(
                first.hold,
                flavor=h100,
                gpus=2,
                to=factories.hold(scene.team),
                actor=scene.ada.as_actor(),
                now=LATER,
            ).gpus
            == 0
        )
    assert live(first) is not None


def test_a_renewal_changed_while_it_waits_stays_one(scene: Scene) -> None:
    factories.policy(SHORT, now=NOW)
    first = scene.ask(1)
    second = renew(scene, first)
    wanted = renewal(first, until=LATER + timedelta(days=2))
    edited = edit(
        second.pk, wanted, by=scene.ada, expected_version=second.version, now=LATER
    )
    assert (edited.state, edited.renews_id, scene.allocated()) == (
        State.APPROVED,
        first.pk,
        1,
    )


def test_who_gives_back_what_was_renewed_is_told_which_allocation_holds_them_now(
    scene: Scene,
) -> None:
    asked = scene.ask(2)
    before = Allocation.objects.get(ended_at=None)
    renew(scene, asked)
    now_held = Allocation.objects.get(ended_at=None)
    with pytest.raises(Conflict, match=f"allocation {now_held.pk} holds 2 now"):
        ends.give_back(before.pk, gpus=1, by=scene.ada, now=LATER)


WINDOW = replace(WIDE, automatic_gpus=6, window_gpus_team=6, window_gpus_person=6)


def counted(scene: Scene, *, now: datetime) -> tuple[int, int]:
    """GPUs that the windows of the team and of Ada count."""
    asked = replace(scene.wanted(1), until=now + DAY)
    standing = judge(asked, person=scene.ada, now=now).standing
    return standing.recent_team_gpus, standing.recent_person_gpus


def test_gpus_that_are_kept_longer_count_once_in_the_windows(scene: Scene) -> None:
    factories.policy(WINDOW, now=NOW)
    first = scene.ask(4)
    second = renew(scene, first)
    assert (first.state, second.state) == (State.APPROVED, State.APPROVED)
    assert given_lately(scene.ada, since=NOW - DAY).gpus == 4
    assert counted(scene, now=LATER) == (4, 4)
    third = renew(scene, second, until=NOW + 12 * DAY, now=LATER + HOUR)
    assert third.state == State.APPROVED
    assert counted(scene, now=LATER + HOUR) == (4, 4)


def test_gpus_that_are_kept_longer_count_when_their_first_grant_is_long_ago(
    scene: Scene,
) -> None:
    factories.policy(WINDOW, now=NOW)
    renew(scene, scene.ask(4))
    assert counted(scene, now=NOW + 8 * DAY) == (4, 4)
    judged = judge(
        replace(scene.wanted(3), until=LATER + DAY), person=scene.ada, now=LATER
    )
    assert judged.answer.outcome is Outcome.PEOPLE
    events = coming(judged.wanted, person=scene.ada, policy=judged.policy, now=LATER)
    left = [(each.at, each.team, each.person) for each in events if each.team]
    assert left == [(LATER + 7 * DAY + timedelta(seconds=1), 4, 4)]


def test_gpus_that_people_let_go_on_still_count_as_what_the_policy_gave(
    scene: Scene,
) -> None:
    factories.policy(replace(WINDOW, automatic_days=3), now=NOW)
    second = renew(scene, scene.ask(4))
    assert second.state == State.WAITING
    approve(
        second.pk, by=scene.priya, expected_version=second.version, count=4, now=LATER
    )
    assert counted(scene, now=LATER) == (4, 4)


def test_what_was_given_back_before_the_rest_is_kept_longer_still_counts(
    scene: Scene,
) -> None:
    factories.policy(WINDOW, now=NOW)
    first = scene.ask(6)
    held = live(first)
    assert held is not None
    ends.give_back(held.pk, gpus=2, by=scene.ada, now=NOW + DAY)
    judged = judge(renewal(first), person=scene.ada, now=LATER)
    assert judged.standing.recent_team_gpus == 2
    events = coming(judged.wanted, person=scene.ada, policy=judged.policy, now=LATER)
    assert [each.team for each in events if each.team] == [2]
    second = renew(scene, first)
    assert second.state == State.APPROVED
    assert counted(scene, now=LATER) == (6, 6)


def test_the_simulator_counts_gpus_that_are_kept_longer_once(scene: Scene) -> None:
    factories.policy(WINDOW, now=NOW)
    renew(scene, scene.ask(4))
    asked = submit(scene.wanted(2, days=4), by=scene.ada, now=LATER + HOUR)
    assert asked.state == State.APPROVED
    for most, differ in ((6, []), (5, [asked.pk])):
        draft = Policy(
            thresholds=replace(WINDOW, window_days=30, window_gpus_team=most)
        )
        found = simulate(draft, days=30, now=LATER + DAY, who=scene.priya).past
        moved = [each.request_id for each in found.differing]
        assert moved == differ


def test_who_decides_a_renewal_is_told_that_it_takes_nothing_from_the_pool(
    scene: Scene,
) -> None:
    waiting_renewal(scene)
    facts = dict(Notice.objects.filter(kind="request_waiting").latest("id").said.facts)
    assert facts["Stays free"] == "20 of 24"
