"""Deciding: by the right person, on what is asked now, once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from accounts.models import RoleHeld, User
from allocations.models import Allocation, Budget
from approvals.decisions.actions import approve, ask_back, may_decide, reject
from approvals.models import Decision, Request
from approvals.requests.actions import move, submit
from approvals.states import State
from audit.models import Event
from fleet.models import Cluster, Flavor
from policy.document import Policy, Route, StepPlan
from policy.evaluation import Outcome
from tests import factories
from tests.approvals import shop
from tests.approvals.asks import GROUP as BOARD
from tests.scene import DAY, NOW, Scene, books, ledger
from web.refusals import BadInput, Conflict, NoRight, Refused, Stale

LATER = NOW + timedelta(hours=2)


def fresh(request: Request) -> Request:
    return Request.objects.get(pk=request.pk)


def votes(request: Request) -> list[tuple[str, str, int | None]]:
    rows = request.decisions.select_related("by").order_by("id")
    return [(row.by.name if row.by else "", row.verdict, row.count) for row in rows]


def refusal(action: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as refused:
        action()
    return refused.value


def test_a_platform_lead_approves_and_it_is_issued(scene: Scene) -> None:
    request = scene.ask(5)
    approved = approve(
        request.pk, by=scene.priya, expected_version=1, reason=" Fine. ", now=LATER
    )
    allocation = Allocation.objects.get()
    assert (approved.state, approved.approved_count, approved.decided_at) == (
        "approved",
        5,
        LATER,
    )
    assert (allocation.gpus, allocation.starts_at, allocation.until) == (
        5,
        LATER,
        NOW + 3 * DAY,
    )
    assert votes(request) == [("Priya Raman", "approve", 5)]
    assert request.decisions.get().reason == "Fine."
    assert scene.allocated() == 5
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(350)}
    assert [e.outcome for e in request.evaluations.all()] == [
        Outcome.PEOPLE,
        Outcome.PEOPLE,
    ]
    assert request.steps.filter(done_at=LATER).count() == 1
    told = list(Event.objects.order_by("seq").values_list("kind", flat=True))
    assert told.index("request.approved") < told.index("allocation.issued")
    event = Event.objects.get(kind="request.approved")
    assert (event.actor_name, event.details["policy"], event.details["usd"]) == (
        "Priya Raman",
        1,
        str(approved.decisions.get().usd),
    )


def test_eight_gpus_need_leadership_after_the_platform_leads(scene: Scene) -> None:
    request = scene.ask(8)
    half = approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    assert (half.state, half.version, Allocation.objects.count()) == ("waiting", 2, 0)
    assert Event.objects.latest("seq").kind == "request.step_done"
    refused = refusal(
        lambda: approve(request.pk, by=scene.marcus, expected_version=2, now=NOW)
    )
    assert (refused.code, refused.message) == (
        "not_an_approver",
        "This step is for engineering leadership.",
    )
    assert (
        approve(request.pk, by=scene.elena, expected_version=2, now=NOW).state
        == "approved"
    )
    assert votes(request) == [
        ("Priya Raman", "approve", 8),
        ("Elena Petrova", "approve", 8),
    ]
    assert scene.allocated() == 8


def test_leadership_does_not_decide_the_platform_leads_step(scene: Scene) -> None:
    request = scene.ask(8)
    assert isinstance(
        refusal(
            lambda: approve(request.pk, by=scene.elena, expected_version=1, now=NOW)
        ),
        NoRight,
    )


def test_what_is_decided_is_saved_as_nothing_else(scene: Scene) -> None:
    request = scene.ask(5)
    stale = fresh(request)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    assert (
        refusal(lambda: move(fresh(request), now=NOW, state=State.WAITING)).code
        == "already_decided"
    )
    assert refusal(lambda: move(fresh(request), now=NOW)).code == "already_decided"
    # Who read it before the decision saves nothing over it.
    assert isinstance(
        refusal(lambda: move(stale, now=NOW, state=State.REJECTED, decided_at=NOW)),
        Stale,
    )
    assert fresh(request).state == "approved"


def test_approving_fewer_than_eight_spares_leadership(scene: Scene) -> None:
    request = scene.ask(8)
    approved = approve(request.pk, by=scene.priya, expected_version=1, count=7, now=NOW)
    assert (approved.state, approved.gpus, approved.approved_count) == (
        "approved",
        8,
        7,
    )
    assert [step.seat for step in request.steps.all()] == ["platform_leads"]
    assert scene.allocated() == 7
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(504)}


def test_what_the_first_step_left_is_what_the_second_decides_on(scene: Scene) -> None:
    request = scene.ask(12)
    approve(request.pk, by=scene.priya, expected_version=1, count=9, now=NOW)
    too_many = refusal(
        lambda: approve(
            request.pk, by=scene.elena, expected_version=2, count=10, now=NOW
        )
    )
    assert (too_many.code, too_many.message) == (
        "out_of_range",
        "Approve between 1 and 9.",
    )
    approved = approve(request.pk, by=scene.elena, expected_version=2, now=NOW)
    assert (approved.approved_count, scene.allocated(), scene.held_usd()) == (
        9,
        9,
        Decimal(648),
    )


@pytest.mark.parametrize("gpus", [0, -1, 6])
def test_it_approves_neither_none_nor_more_than_was_asked(
    scene: Scene, gpus: int
) -> None:
    request = scene.ask(5)
    refused = refusal(
        lambda: approve(
            request.pk, by=scene.priya, expected_version=1, count=gpus, now=NOW
        )
    )
    assert isinstance(refused, BadInput)
    assert (refused.field, fresh(request).version, votes(request)) == ("count", 1, [])


def test_a_rejection_needs_a_reason_and_lets_the_money_go(scene: Scene) -> None:
    request = scene.ask(5)
    for text in ("", "   "):
        refused = refusal(
            lambda text=text: reject(
                request.pk, by=scene.priya, expected_version=1, reason=text, now=NOW
            )  # type: ignore[misc]
        )
        assert (refused.code, refused.field) == ("reason_needed", "reason")
    rejected = reject(
        request.pk, by=scene.priya, expected_version=1, reason="Use the T4s.", now=NOW
    )
    assert (rejected.state, rejected.decided_at, rejected.approved_count) == (
        "rejected",
        NOW,
        None,
    )
    assert votes(request) == [("Priya Raman", "reject", None)]
    assert (scene.held_usd(), scene.allocated()) == (Decimal(0), 0)
    assert Event.objects.latest("seq").kind == "request.rejected"


def test_a_question_needs_words_and_may_be_asked_again_by_who_asked(
    scene: Scene,
) -> None:
    request = scene.ask(5)
    assert (
        refusal(
            lambda: ask_back(
                request.pk, by=scene.priya, expected_version=1, question=" ", now=NOW
            )
        ).code
        == "required"
    )
    ask_back(request.pk, by=scene.priya, expected_version=1, question="Why?", now=NOW)
    ask_back(
        request.pk, by=scene.priya, expected_version=2, question="And when?", now=NOW
    )
    assert (
        approve(request.pk, by=scene.priya, expected_version=3, now=NOW).state
        == "approved"
    )


def test_nobody_decides_their_own_request(scene: Scene) -> None:
    factories.join(scene.team, scene.priya)
    own = submit(scene.wanted(5), by=scene.priya, now=NOW)
    decide: list[Callable[[], object]] = [
        lambda: approve(own.pk, by=scene.priya, expected_version=1, now=NOW),
        lambda: reject(
            own.pk, by=scene.priya, expected_version=1, reason="no", now=NOW
        ),
        lambda: ask_back(
            own.pk, by=scene.priya, expected_version=1, question="why", now=NOW
        ),
    ]
    assert [refusal(action).code for action in decide] == ["self_approval"] * 3
    assert may_decide(own, scene.priya, now=NOW) == "Nobody decides their own request."
    assert (
        approve(own.pk, by=scene.marcus, expected_version=1, now=NOW).state
        == "approved"
    )


def test_the_database_too_refuses_a_vote_on_ones_own_request(scene: Scene) -> None:
    request = scene.ask(5)
    vote = Decision(
        request=request,
        requester=scene.ada,
        by=scene.ada,
        content_version=1,
        verdict="approve",
        count=5,
        until=request.until,
        at=NOW,
    )
    with (
        pytest.raises(IntegrityError, match="nobody_decides_their_own_request"),
        transaction.atomic(),
    ):
        Decision.objects.bulk_create([vote])


@pytest.mark.parametrize("who", ["ada", "mallory", "elena"])
def test_who_has_no_seat_decides_nothing(scene: Scene, who: str) -> None:
    request, person = scene.ask(5), getattr(scene, who)
    assert isinstance(person, User)
    refused = refusal(
        lambda: approve(request.pk, by=person, expected_version=1, now=NOW)
    )
    assert isinstance(refused, NoRight)
    assert may_decide(request, person, now=NOW)
    assert votes(request) == []


def test_a_lead_whose_account_was_disabled_decides_nothing(scene: Scene) -> None:
    request = scene.ask(5)
    User.objects.filter(pk=scene.priya.pk).update(is_active=False)
    off = User.objects.get(pk=scene.priya.pk)
    refused = refusal(lambda: approve(request.pk, by=off, expected_version=1, now=NOW))
    assert (type(refused), refused.code) == (NoRight, "account_disabled")


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_decision_on_what_one_has_not_seen_is_stale(
    scene: Scene, version: int
) -> None:
    request = scene.ask(5)
    ask_back(request.pk, by=scene.marcus, expected_version=1, question="Why?", now=NOW)
    refused = refusal(
        lambda: approve(request.pk, by=scene.priya, expected_version=version, now=NOW)
    )
    assert isinstance(refused, Stale)
    assert (refused.code, fresh(request).state) == ("stale", "waiting")


def test_what_is_decided_is_not_decided_again(scene: Scene) -> None:
    request = scene.ask(5)
    approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    for person in (scene.priya, scene.marcus):
        refused = refusal(
            lambda person=person: approve(  # type: ignore[misc]
                request.pk, by=person, expected_version=2, now=NOW
            )
        )
        assert isinstance(refused, Conflict)
        assert refused.message == "The request is already approved."
        assert may_decide(fresh(request), person, now=NOW) == "It is already approved."
    assert len(votes(request)) == 1


def test_one_person_with_two_seats_takes_one_of_the_steps(scene: Scene) -> None:
    RoleHeld.objects.create(user=scene.priya, role="engineering_leadership")
    both = User.objects.get(pk=scene.priya.pk)
    request = scene.ask(8)
    approve(request.pk, by=both, expected_version=1, now=NOW)
    refused = refusal(lambda: approve(request.pk, by=both, expected_version=2, now=NOW))
    assert refused.code == "voted_already"
    assert may_decide(fresh(request), both, now=NOW).startswith(
        "You have decided a step of it already"
    )
    assert list(Request.objects.awaiting(both, NOW)) == []
    assert list(Request.objects.awaiting(scene.elena, NOW)) == [request]


def test_gpus_that_are_gone_by_now_are_a_conflict(scene: Scene) -> None:
    request = scene.ask(5)
    Flavor.objects.update(allocated=20)
    refused = refusal(
        lambda: approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    )
    assert (refused.code, refused.message) == (
        "not_enough_free",
        "Not possible now: 4 free now, 5 needed.",
    )
    assert (fresh(request).state, votes(request), request.evaluations.count()) == (
        "waiting",
        [],
        1,
    )
    assert (
        approve(
            request.pk, by=scene.priya, expected_version=1, count=4, now=NOW
        ).approved_count
        == 4
    )


def test_money_that_is_not_there_is_a_conflict_until_it_is(scene: Scene) -> None:
    Budget.objects.create(
        team=scene.team, month=NOW.date().replace(day=1), limit_usd=100
    )
    request = scene.ask(5)
    assert (
        refusal(
            lambda: approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
        ).code
        == "not_enough_budget"
    )
    Budget.objects.update(limit_usd=360)
    assert (
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW).state
        == "approved"
    )
    assert scene.held_usd() == 360


def test_the_money_a_request_holds_itself_counts_as_left(scene: Scene) -> None:
    Budget.objects.create(
        team=scene.team, month=NOW.date().replace(day=1), limit_usd=360
    )
    request = scene.ask(5)
    assert scene.held_usd() == 360
    assert (
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW).state
        == "approved"
    )
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(360)}


def with_route(*steps: StepPlan) -> Policy:
    return replace(Policy(), routes=(Route(name="All", steps=steps),))


def test_a_policy_that_changes_on_the_way_takes_nobodys_say_away(scene: Scene) -> None:
    request = scene.ask(8)
    factories.policy(
        with_route(StepPlan(by="platform_leads"), StepPlan(by=BOARD)), now=NOW + DAY / 2
    )
    half = approve(request.pk, by=scene.priya, expected_version=1, now=NOW + DAY)
    assert (half.state, Allocation.objects.count()) == ("waiting", 0)
    whole = approve(request.pk, by=scene.elena, expected_version=2, now=NOW + DAY)
    assert whole.state == "approved"


def test_a_manager_who_changes_on_the_way_decides_still(scene: Scene) -> None:
    first, second = factories.person("Mona First"), factories.person("Mona Second")
    User.objects.filter(pk=scene.ada.pk).update(managers=[str(first.oid)])
    factories.policy(
        with_route(StepPlan(by="platform_leads"), StepPlan(by="managers")),
        now=NOW - DAY,
    )
    scene.ada.refresh_from_db()
    request = scene.ask(5)
    User.objects.filter(pk=scene.ada.pk).update(managers=[str(second.oid)])
    half = approve(request.pk, by=scene.priya, expected_version=1, now=LATER)
    assert (half.state, Allocation.objects.count()) == ("waiting", 0)
    assert request.steps.filter(seat=f"person:{first.oid}", opened_at=LATER).exists()


def test_nobody_approves_a_volume_more_than_its_namespace_may_have(
    scene: Scene,
) -> None:
    factories.make_true(scene.tenancy)
    short, long = (
        submit(
            shop.wanted(scene, "volume", name=name, until=NOW + days * DAY),
            by=scene.ada,
            now=NOW,
        )
        for name, days in (("short", 3), ("long", 60))
    )
    assert (short.state, long.state) == ("approved", "waiting")
    factories.more_volumes(Allocation.objects.get(hold=short.hold), 99)
    refused = refusal(
        lambda: approve(long.pk, by=scene.priya, expected_version=1, now=LATER)
    )
    assert (refused.code, fresh(long).state) == ("too_many_volumes", "waiting")


def test_nobody_approves_a_volume_on_a_cluster_that_closed_meanwhile(
    scene: Scene,
) -> None:
    asked = shop.wanted(scene, "volume", name="long", until=NOW + 60 * DAY)
    long = submit(asked, by=scene.ada, now=NOW)
    Cluster.objects.update(enabled=False)
    refused = refusal(
        lambda: approve(long.pk, by=scene.priya, expected_version=1, now=LATER)
    )
    assert (refused.code, fresh(long).state) == ("cluster_off", "waiting")


def test_nothing_is_granted_to_who_may_not_ask_any_more(scene: Scene) -> None:
    request = scene.ask(5)
    scene.team.memberships.filter(user=scene.ada).delete()
    refused = refusal(
        lambda: approve(request.pk, by=scene.priya, expected_version=1, now=LATER)
    )
    assert "cannot be granted any more" in refused.message
    assert not Allocation.objects.exists()
    reject(
        request.pk,
        by=scene.priya,
        expected_version=1,
        reason="She has left.",
        now=LATER,
    )


def test_an_end_that_has_passed_is_not_approved(scene: Scene) -> None:
    request = scene.ask(5)
    refused = refusal(
        lambda: approve(
            request.pk, by=scene.priya, expected_version=1, now=request.until
        )
    )
    assert refused.code == "too_late"
    assert (
        reject(
            request.pk,
            by=scene.priya,
            expected_version=1,
            reason="Too late.",
            now=request.until,
        ).state
        == "rejected"
    )


def test_an_approver_sees_what_awaits_them_alone(scene: Scene) -> None:
    small, large = scene.ask(5), scene.ask(8)

    def awaiting(person: User) -> set[int]:
        return set(Request.objects.awaiting(person, NOW).values_list("pk", flat=True))

    assert awaiting(scene.priya) == awaiting(scene.marcus) == {small.pk, large.pk}
    assert (
        awaiting(scene.elena) == awaiting(scene.ada) == awaiting(scene.mallory) == set()
    )
    approve(large.pk, by=scene.priya, expected_version=1, now=NOW)
    assert (awaiting(scene.priya), awaiting(scene.elena)) == ({small.pk}, {large.pk})
