"""Each safety guard, when switched off, makes at least one test fail: shown by switching it off."""

import pytest

from tests.guards.listed import MORE
from tests.guards.switching import Guard, play, switch_off
from tests.scene import DAY, NOW

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

D, A = "tests.approvals.test_decisions:", "tests.approvals.test_actions:"
GUARDS = [
    Guard(
        "approvals.decisions.actions:_locked",
        "if request.requester_id == by.pk:",
        "if False:",
        D + "test_nobody_decides_their_own_request",
    ),
    Guard(
        "approvals.decisions.actions:_locked",
        "if seat_of is None:",
        "if False:",
        D + "test_who_has_no_seat_decides_nothing",
        {"who": "mallory"},
    ),
    Guard(
        "approvals.decisions.actions:_locked",
        "if request.version != expected_version:",
        "if False:",
        D + "test_a_decision_on_what_one_has_not_seen_is_stale",
        {"version": 0},
    ),
    Guard(
        "approvals.decisions.actions:_locked",
        "if request.state != State.WAITING or step is None:",
        "if False:",
        D + "test_what_is_decided_is_not_decided_again",
    ),
    Guard(
        "approvals.decisions.actions:_locked",
        "freshness.check(by, now=now)",
        "pass",
        D + "test_a_lead_whose_account_was_disabled_decides_nothing",
    ),
    Guard(
        "approvals.decisions.actions:_approved",
        "if not 1 <= wanted <= asked:",
        "if False:",
        D + "test_it_approves_neither_none_nor_more_than_was_asked",
        {"gpus": 0},
    ),
    Guard(
        "approvals.decisions.shortening:approved_end",
        "if not earliest <= until <= latest:",
        "if False:",
        "tests.approvals.test_approving_shorter:test_it_approves_no_end_out_of_range",
        {"until": NOW + DAY / 2},
    ),
    Guard(
        "approvals.decisions.actions:reject",
        "if not reason.strip():",
        "if False:",
        D + "test_a_rejection_needs_a_reason_and_lets_the_money_go",
    ),
    Guard(
        "approvals.decisions.actions:_judge_again",
        "for rule in judged.answer.rules:",
        "for rule in ():",
        D + "test_gpus_that_are_gone_by_now_are_a_conflict",
    ),
    Guard(
        "approvals.decisions.actions:_judge_again",
        "if request.until_now <= now:",
        "if False:",
        D + "test_an_end_that_has_passed_is_not_approved",
    ),
    Guard(
        "approvals.requests.actions:_check_may_ask_for_any_team",
        "if not by.may(Permission.ONBOARD_ANY_GROUP):",
        "if False:",
        A + "test_a_stranger_cannot_ask_for_a_team",
    ),
    Guard(
        "approvals.requests.actions:withdraw",
        "if not may_withdraw(request, by):",
        "if False:",
        A + "test_nobody_else_withdraws_and_nothing_decided_is_withdrawn",
    ),
    Guard(
        "allocations.ends.actions:checked",
        "if (lacking := why_not_held(allocation, amount, now=now)):",
        "if False:",
        "tests.allocations.test_actions:test_nobody_gives_back_what_is_not_held",
        {"gpus": 0},
    ),
    Guard(
        "allocations.ends.actions:give_back",
        "if not may_give_back(by, allocation.team_id):",
        "if False:",
        "tests.allocations.test_actions:test_members_and_platform_leads_give_back_and_nobody_else",
    ),
    Guard(
        "allocations.budgets.actions:set_budget",
        "if not by.may(Permission.MANAGE_BUDGETS):",
        "if False:",
        "tests.allocations.test_actions:test_nobody_else_sets_budgets",
        {"who": "ada"},
    ),
    Guard(
        "allocations.budgets.balances:reserve",
        ", limit_usd__gte=then_usd",
        "",
        "tests.allocations.test_budgets:test_holding_exactly_the_limit_is_possible_and_a_cent_more_is_not",
    ),
    Guard(
        "approvals.decisions.bulk:decide_many",
        "if len({each.request for each in chosen}) != len(chosen):",
        "if False:",
        "tests.approvals.test_bulk:test_none_too_many_and_doubles_are_refused",
    ),
]


@pytest.mark.parametrize("guard", [*GUARDS, *MORE], ids=str)
def test_a_test_notices_that_it_is_off(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = play(guard.noticed_by, guard.given)
    assert with_it is None, with_it
    switch_off(guard, monkeypatch)
    assert play(guard.noticed_by, guard.given) is not None


def test_a_guard_that_is_not_there_is_not_taken_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = Guard("approvals.requests.actions:close", "if nobody.ever:", "if False:", "")
    with pytest.raises(AssertionError, match="has 0 times"):
        switch_off(gone, monkeypatch)
